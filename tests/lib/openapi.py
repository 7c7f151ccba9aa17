"""A structural check of OpenAPI 3.1 documents: what the specification says about names, references and schemas."""

import re

METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}
TYPES = {"null", "boolean", "object", "array", "number", "string", "integer"}
# Of JSON Schema 2020-12, with what kind of value each word takes.
WORDS = {
    "$ref": str,
    "type": (str, list),
    "enum": list,
    "const": object,
    "description": str,
    "default": object,
    "properties": dict,
    "required": list,
    "additionalProperties": (bool, dict),
    "items": dict,
    "allOf": list,
    "oneOf": list,
    "anyOf": list,
    "minimum": (int, float),
    "maximum": (int, float),
    "maxLength": int,
    "minItems": int,
    "maxItems": int,
    "contentEncoding": str,
}
COMPONENT = re.compile(r"^[a-zA-Z0-9._-]+$")
STATUS = re.compile(r"^([1-5][0-9][0-9]|[1-5]XX|default)$")


class Checker:
    """Collects faults, each with the place where it is."""

    def __init__(self, document):
        self.document = document
        self.faults = []
        self.operation_ids = set()
        self.used = set()

    def fault(self, at, text):
        self.faults.append(f"{at}: {text}")

    def has(self, at, value, kinds):
        """Whether the members are there, and of these kinds. `kinds`: {name: type}, a name that ends with ? may be absent."""
        if not isinstance(value, dict):
            self.fault(at, "is no object")
            return False
        good = True
        for name, kind in kinds.items():
            member = name.rstrip("?")
            if member not in value:
                if not name.endswith("?"):
                    self.fault(at, f"has no {member}")
                    good = False
            elif not isinstance(value[member], kind):
                self.fault(f"{at}.{member}", f"is no {kind}")
                good = False
        for name in value:
            if name not in kinds and f"{name}?" not in kinds and not name.startswith("x-"):
                self.fault(at, f"{name} is no member of it")
        return good

    def resolve(self, at, value):
        """The object itself, or what its reference names; None if that is not there."""
        if not isinstance(value, dict) or "$ref" not in value:
            return value
        reference = value["$ref"]
        if not reference.startswith("#/"):
            self.fault(at, f"{reference} is outside")
            return None
        found = self.document
        for part in reference[2:].split("/"):
            part = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or part not in found:
                self.fault(at, f"{reference} is not there")
                return None
            found = found[part]
        self.used.add(reference)
        return found

    # Schemas.

    def schema(self, at, schema):
        if not isinstance(schema, dict):
            self.fault(at, "is no schema")
            return
        for word, value in schema.items():
            if word not in WORDS:
                self.fault(at, f"{word} is no word of JSON Schema that is used here")
            elif not isinstance(value, WORDS[word]):
                self.fault(f"{at}.{word}", "has a wrong value")
        if "$ref" in schema:
            self.resolve(at, schema)
        self._type(at, schema)
        self._numbers(at, schema)
        self._members(at, schema)
        for word in ("allOf", "oneOf", "anyOf"):
            if word in schema and not schema[word]:
                self.fault(at, f"{word} is empty")
            for i, inner in enumerate(schema.get(word, [])):
                self.schema(f"{at}.{word}[{i}]", inner)

    def _type(self, at, schema):
        kinds = schema.get("type", [])
        kinds = kinds if isinstance(kinds, list) else [kinds]
        if "type" in schema and (not kinds or len(set(kinds)) != len(kinds) or not set(kinds) <= TYPES):
            self.fault(at, f"type {schema['type']}")
        values = schema.get("enum", [])
        if "enum" in schema and (not values or len({repr(value) for value in values}) != len(values)):
            self.fault(at, "enum is empty or has something twice")
        for value in values:
            if "string" in kinds and not isinstance(value, str) and value is not None:
                self.fault(at, f"enum has {value!r}")

    def _numbers(self, at, schema):
        if "minimum" in schema and "maximum" in schema and schema["minimum"] > schema["maximum"]:
            self.fault(at, "minimum above maximum")
        if schema.get("maxLength", 0) < 0:
            self.fault(at, "maxLength below 0")

    def _members(self, at, schema):
        properties = schema.get("properties", {})
        for name, inner in properties.items():
            self.schema(f"{at}.{name}", inner)
        required = schema.get("required", [])
        if len(set(required)) != len(required) or not set(required) <= set(properties):
            self.fault(at, f"required {required} of {sorted(properties)}")
        if isinstance(schema.get("additionalProperties"), dict):
            self.schema(f"{at}.*", schema["additionalProperties"])
        if "items" in schema:
            self.schema(f"{at}[]", schema["items"])

    # Operations.

    def content(self, at, content):
        for kind, media in content.items():
            if "/" not in kind:
                self.fault(at, f"{kind} is no media type")
            if self.has(f"{at} {kind}", media, {"schema?": dict}) and "schema" in media:
                self.schema(f"{at} {kind}", media["schema"])

    def response(self, at, response):
        response = self.resolve(at, response)
        if response and self.has(at, response, {"description": str, "content?": dict, "headers?": dict}):
            self.content(at, response.get("content", {}))

    def parameters(self, at, listed):
        """Those of a path or an operation, as (where, name)."""
        found = set()
        for i, parameter in enumerate(listed):
            parameter = self.resolve(at, parameter)
            if not parameter:
                continue
            here = f"{at}.parameters[{i}]"
            kinds = {"name": str, "in": str, "schema": dict, "description?": str, "required?": bool, "style?": str, "explode?": bool}
            if not self.has(here, parameter, kinds):
                continue
            key = (parameter["in"], parameter["name"])
            if parameter["in"] not in ("query", "header", "path", "cookie") or key in found:
                self.fault(here, f"{key} is wrong or there twice")
            if parameter["in"] == "path" and parameter.get("required") is not True:
                self.fault(here, "a part of the path must be required")
            self.schema(here, parameter["schema"])
            found.add(key)
        return found

    def operation(self, at, operation, in_path):
        kinds = {
            "operationId": str,
            "summary": str,
            "description?": str,
            "tags": list,
            "parameters?": list,
            "requestBody?": dict,
            "responses": dict,
            "security?": list,
        }
        if not self.has(at, operation, kinds):
            return
        if operation["operationId"] in self.operation_ids:
            self.fault(at, f"operationId {operation['operationId']} is there twice")
        self.operation_ids.add(operation["operationId"])
        known = {tag["name"] for tag in self.document.get("tags", [])}
        if not set(operation["tags"]) <= known:
            self.fault(at, f"tags {operation['tags']}")
        parameters = in_path | self.parameters(at, operation.get("parameters", []))
        declared = {name for where, name in parameters if where == "path"}
        wanted = set(re.findall(r"\{([^}]*)\}", at))
        if declared != wanted:
            self.fault(at, f"parts of the path {sorted(wanted)}, declared {sorted(declared)}")
        if "requestBody" in operation:
            body = operation["requestBody"]
            if self.has(f"{at} body", body, {"content": dict, "required?": bool}):
                self.content(f"{at} body", body["content"])
        if not operation["responses"]:
            self.fault(at, "no responses")
        for status, response in operation["responses"].items():
            if not STATUS.match(status):
                self.fault(at, f"status {status}")
            self.response(f"{at} {status}", response)
        self.security(at, operation.get("security", []))

    def security(self, at, wanted):
        for requirement in wanted:
            for name in requirement:
                if name not in self.document["components"].get("securitySchemes", {}):
                    self.fault(at, f"security {name} is not declared")

    def path(self, path, item):
        if not path.startswith("/"):
            self.fault(path, "does not begin with /")
        in_path = self.parameters(path, item.get("parameters", []))
        for name, value in item.items():
            if name in METHODS:
                self.operation(f"{name.upper()} {path}", value, in_path)
            elif name != "parameters":
                self.fault(path, f"{name} is no method")

    def components(self):
        for kind, entries in self.document["components"].items():
            for name, value in entries.items():
                at = f"components.{kind}.{name}"
                if not COMPONENT.match(name):
                    self.fault(at, "is no name")
                if kind == "schemas":
                    self.schema(at, value)
                elif kind == "responses":
                    self.response(at, value)
                elif kind == "parameters":
                    self.parameters(at, [value])
                elif kind != "securitySchemes":
                    self.fault(at, "is not used here")

    def run(self):
        kinds = {
            "openapi": str,
            "info": dict,
            "servers?": list,
            "security?": list,
            "tags?": list,
            "paths": dict,
            "components": dict,
        }
        if not self.has("document", self.document, kinds):
            return self.faults
        if not re.match(r"^3\.1\.\d+$", self.document["openapi"]):
            self.fault("openapi", self.document["openapi"])
        self.has("info", self.document["info"], {"title": str, "version": str, "description?": str})
        self.security("document", self.document.get("security", []))
        for path, item in self.document["paths"].items():
            self.path(path, item)
        shapes = [re.sub(r"\{[^}]*\}", "{}", path) for path in self.document["paths"]]
        if len(set(shapes)) != len(shapes):
            self.fault("paths", "two differ in the names of their parts only")
        self.components()
        return self.faults


def faults(document):
    """What is wrong with a document, as sentences."""
    return Checker(document).run()


def matches(document, schema, value, at="value"):
    """What of a value is not as a schema says: for answers of the real thing. Only the words that are used here."""
    if "$ref" in schema:
        found = document
        for part in schema["$ref"][2:].split("/"):
            found = found[part]
        return matches(document, found, value, at)
    wrong = []
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if kinds and not any(_is(kind, value) for kind in kinds):
        return [f"{at}: {value!r} is no {kinds}"]
    if "enum" in schema and value not in schema["enum"]:
        wrong.append(f"{at}: {value!r} is not in {schema['enum']}")
    if "const" in schema and value != schema["const"]:
        wrong.append(f"{at}: {value!r} is not {schema['const']!r}")
    if isinstance(value, dict):
        wrong += _matches_members(document, schema, value, at)
    if isinstance(value, list):
        for i, item in enumerate(value):
            wrong += matches(document, schema.get("items", {}), item, f"{at}[{i}]")
    if value is not None:
        for inner in schema.get("allOf", []):
            wrong += matches(document, inner, value, at)
    if "oneOf" in schema and sum(not matches(document, inner, value, at) for inner in schema["oneOf"]) != 1:
        wrong.append(f"{at}: is not exactly one of what it may be")
    return wrong


def _matches_members(document, schema, value, at):
    wrong = [f"{at}: has no {name}" for name in schema.get("required", []) if name not in value]
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name, member in value.items():
        if name in properties:
            wrong += matches(document, properties[name], member, f"{at}.{name}")
        elif others is False:
            wrong.append(f"{at}: {name} is not in the schema")
        elif isinstance(others, dict):
            wrong += matches(document, others, member, f"{at}.{name}")
    return wrong


def _is(kind, value):
    if kind in ("integer", "number") and isinstance(value, bool):
        return False
    return {
        "null": value is None,
        "boolean": isinstance(value, bool),
        "object": isinstance(value, dict),
        "array": isinstance(value, list),
        "number": isinstance(value, (int, float)),
        "string": isinstance(value, str),
        "integer": isinstance(value, int),
    }[kind]
