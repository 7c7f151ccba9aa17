/* What cppcheck has to know of headers that it is not given: loops of jansson that are macros. */
#define json_object_foreach(object, key, value) while ((key = next_key(object)) && (value = get(object, key)))
#define json_object_foreach_safe(object, n, key, value) while ((key = next_key(object)) && (value = get(object, key)))
#define json_array_foreach(array, index, value) for (index = 0; (value = get(array, index)); index++)
