"""A structural check of OpenAPI 3.1 documents: what the specification says about names, references and schemas."""

import json
import re
import urllib.parse

import jsonschema

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


class Described:
    """A document as a measure of what is sent and answered: Debian's JSON Schema decides, the document's own words are taken as they are."""

    def __init__(self, document):
        self.document = document
        self.done = set()  # (method, path) that were answered as wished for

    def faults(self, schema, value, at="value"):
        """What of a value is not as a schema says."""
        whole = {"components": self.document["components"], "allOf": [schema]}
        errors = jsonschema.Draft202012Validator(whole).iter_errors(value)
        return [f"{at}{''.join(f'[{part!r}]' for part in error.absolute_path)}: {error.message:.300}" for error in errors]

    def resolve(self, value):
        if "$ref" not in value:
            return value
        found = self.document
        for part in value["$ref"][2:].split("/"):
            found = found[part]
        return found

    def find(self, method, path):
        """(path of the document, operation) for a request; literal parts win against parameters."""
        parts = path.split("/")
        fitting = []
        for pattern in self.document["paths"]:
            words = pattern.split("/")
            if len(words) == len(parts) and all(word == part or word.startswith("{") for word, part in zip(words, parts)):
                fitting.append((pattern.count("{"), pattern))
        if not fitting:
            return None, None
        pattern = min(fitting)[1]
        return pattern, self.document["paths"][pattern].get(method.lower())

    def _query(self, operation, query, at):
        known = {}
        for parameter in operation.get("parameters", []):
            parameter = self.resolve(parameter)
            if parameter["in"] == "query":
                known[parameter["name"]] = parameter
        found = []
        given = urllib.parse.parse_qsl(query, keep_blank_values=True)
        for name, text in given:
            parameter = known.get(name.partition("[")[0])
            if not parameter or ("[" in name and parameter.get("style") != "deepObject"):
                found.append(f"{at}: the parameter {name} is not told")
            elif "[" not in name:
                found += self.faults(parameter["schema"], _typed(parameter["schema"], text), f"{at} {name}")
        for name, parameter in known.items():
            if parameter.get("required") and name not in dict(given):
                found.append(f"{at}: was answered without {name}")
        return found

    def _request(self, operation, query, body, at):
        """What was carried out must be something that the document allows."""
        found = self._query(operation, query, at)
        told = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if told and body:
            found += self.faults(told["schema"], json.loads(body), f"{at} body")
        elif body and "requestBody" not in operation:
            found.append(f"{at}: has a body that is not told")
        return found

    def check(self, method, target, body, status, kind, answer, stray=False):
        """What of a request and its answer is not told so. `kind` is its Content-Type, `answer` its bytes (None: a stream that goes on).
        `stray`: the parameters are none of this route's, which may ignore them."""
        path, _, query = target.partition("?")
        pattern, operation = self.find(method, path)
        at = f"{method} {pattern or path} {status}"
        if not operation:
            return []
        found = []
        if status < 300:
            self.done.add((method, pattern))
            found = [] if stray else self._request(operation, query, body, at)
        responses = operation["responses"]
        told = self.resolve(responses.get(str(status)) or responses.get("default", {}))
        if not told or (status < 300 and str(status) not in responses):
            return [*found, f"{at}: no such answer is told"]
        content = told.get("content", {})
        kind = (kind or "").partition(";")[0].strip()
        if content and kind not in content:
            found.append(f"{at}: {kind} is none of {sorted(content)}")
        elif not content and answer:
            found.append(f"{at}: has a body that is not told")
        elif content and kind == "application/json" and answer is not None:
            found += self.faults(content[kind].get("schema", {}), json.loads(answer), at)
        return found


def _typed(schema, text):
    kinds = schema.get("type", [])
    if kinds == "integer" and re.fullmatch("[0-9]+", text):
        return int(text)
    if kinds == "boolean" and text in ("true", "false"):
        return text == "true"
    return text
