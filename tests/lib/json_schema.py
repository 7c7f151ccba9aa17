"""JSON Schema 2020-12 as far as our tools use it: a value against a schema, and a schema against the words that every client knows."""

WORDS = {"type", "properties", "required", "items", "enum", "const", "additionalProperties", "minimum", "maximum", "minLength", "maxLength",
         "minItems", "maxItems", "anyOf", "oneOf", "description", "title", "default", "$schema"}
TYPES = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
}


def faults_of_schema(schema, at="schema"):
    """Words and values that an older client might not cope with."""
    if not isinstance(schema, dict):
        return [f"{at}: no object"]
    found = [f"{at}: {word}" for word in schema if word not in WORDS]
    kinds = schema.get("type", [])
    found += [f"{at}: type {kind}" for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind not in TYPES]
    properties = schema.get("properties", {})
    found += [f"{at}: {name} is required and not there" for name in schema.get("required", []) if name not in properties]
    for name, inner in properties.items():
        found += faults_of_schema(inner, f"{at}.{name}")
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            found += faults_of_schema(schema[word], f"{at}.{word}")
    for word in ("anyOf", "oneOf"):
        for number, inner in enumerate(schema.get(word, [])):
            found += faults_of_schema(inner, f"{at}.{word}[{number}]")
    return found


def faults(value, schema, at="value"):
    """Where a value is not what the schema says."""
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(TYPES[kind](value) for kind in kinds):
        return [f"{at}: {value!r:.80} is no {kinds}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at}: {value!r:.80} is none of {schema['enum']}")
    if "const" in schema and value != schema["const"]:
        found.append(f"{at}: {value!r:.80} is not {schema['const']}")
    for word in ("anyOf", "oneOf"):
        if word in schema and all(faults(value, inner) for inner in schema[word]):
            found.append(f"{at}: {value!r:.80} fits none of {word}")
    return found + _inside(value, schema, at) + _bounds(value, schema, at)


def _inside(value, schema, at):
    found = []
    if isinstance(value, dict):
        properties, more = schema.get("properties", {}), schema.get("additionalProperties", True)
        found += [f"{at}: {name} is missing" for name in schema.get("required", []) if name not in value]
        for name, inner in value.items():
            if name in properties:
                found += faults(inner, properties[name], f"{at}.{name}")
            elif more is False:
                found.append(f"{at}: {name} is not in the schema")
            elif isinstance(more, dict):
                found += faults(inner, more, f"{at}.{name}")
    if isinstance(value, list) and "items" in schema:
        for number, inner in enumerate(value):
            found += faults(inner, schema["items"], f"{at}[{number}]")
    return found


def _bounds(value, schema, at):
    found = []
    size = len(value) if isinstance(value, (str, list)) else None
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    for word, seen, below in (("minimum", number, True), ("maximum", number, False), ("minLength", size, True), ("maxLength", size, False),
                              ("minItems", size, True), ("maxItems", size, False)):
        if word in schema and seen is not None and (seen < schema[word] if below else seen > schema[word]):
            found.append(f"{at}: {seen} against {word} {schema[word]}")
    return found
