"""Tool definitions out of API descriptions: botocore operations, GitHub's OpenAPI, Google's discovery documents.

Each is {"name", "description", "parameters"} with a small JSON schema. Used by corpus.py."""
import gzip
import hashlib
import html
import json
import re

MAX_PARAMETERS = 5
MAX_CHARACTERS = 600
MAX_DESCRIPTION = 160
MAX_PARAMETER_DESCRIPTION = 80
MAX_ENUM = 6
TYPES = {"string": "string", "integer": "integer", "long": "integer", "boolean": "boolean", "double": "number",
         "float": "number", "number": "number", "list": "array", "array": "array"}


def sentence(text, limit):
    """The first sentence without mark-up; "" if it is longer than the limit."""
    text = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", text or ""))).strip()
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("`", "").replace("*", "")
    text = re.sub(r"^(Required|Optional|Output only|Immutable)\. ?", "", text)
    first = re.split(r"(?<=[.!?]) ", text)[0].strip()
    return re.sub(r" ([.,;:)])", r"\1", first) if len(first) <= limit else ""


def definition(name, description, properties, required):
    """-> one line of JSON, or None if it says too little or is too long. Required parameters come first."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    description = sentence(description, MAX_DESCRIPTION)
    kept = {key: properties[key] for key in [*[k for k in properties if k in required],
                                             *[k for k in properties if k not in required]][:MAX_PARAMETERS]}
    if len(description) < 15 or not kept or len(name) > 64:
        return None
    schema = {"type": "object", "properties": kept, "required": [key for key in kept if key in required]}
    line = json.dumps({"name": name, "description": description, "parameters": schema}, ensure_ascii=False)
    return line if len(line) <= MAX_CHARACTERS else None


def property_of(kind, description, choices=None, item=None):
    """One parameter's schema, or None for a type that these tools do not have."""
    if kind not in TYPES:
        return None
    result = {"type": TYPES[kind]}
    if result["type"] == "array":
        if item not in TYPES or TYPES[item] == "array":
            return None
        result["items"] = {"type": TYPES[item]}
    if choices:
        result["enum"] = choices[:MAX_ENUM]
    text = sentence(description, MAX_PARAMETER_DESCRIPTION)
    return result | ({"description": text} if text else {})


def complete(properties, required):
    """Without the parameters that have no schema; None if a required one is among them."""
    if any(properties.get(key) is None for key in required):
        return None
    return {key: value for key, value in properties.items() if value is not None}


def from_botocore(folder):
    """-> pairs of service and definition, as the other sources."""
    for path in sorted(folder.glob("botocore/data/*/*/service-2.json.gz")):
        with gzip.open(path, "rt") as file:
            service = json.load(file)
        shapes = service["shapes"]
        for name, operation in service["operations"].items():
            shape = shapes.get(operation.get("input", {}).get("shape"), {})
            required = shape.get("required", [])
            properties = {}
            for key, member in shape.get("members", {}).items():
                kind = shapes[member["shape"]]
                item = shapes[kind["member"]["shape"]]["type"] if kind["type"] == "list" else None
                properties[key] = property_of(kind["type"], member.get("documentation"), kind.get("enum"), item)
            if (properties := complete(properties, required)) is not None:
                yield path.parts[-3], definition(name, operation.get("documentation"), properties, required)


def from_openapi(path):
    root = json.loads(path.read_text())

    def target(node):
        while "$ref" in node:
            found = root
            for part in node["$ref"].lstrip("#/").split("/"):
                found = found[part]
            node = found
        return node

    for operations in root["paths"].values():
        for operation in operations.values():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            body = target(body)
            fields = [(p["name"], p.get("schema", {}), p.get("description"), p.get("required"))
                      for p in map(target, operation.get("parameters", [])) if p["in"] in ("path", "query")]
            fields += [(key, value, value.get("description"), key in body.get("required", []))
                       for key, value in body.get("properties", {}).items()]
            fields = [(key, target(schema), text, needed) for key, schema, text, needed in fields]
            required = [key for key, _, _, needed in fields if needed]
            properties = {key: property_of(schema.get("type") if isinstance(schema.get("type"), str) else None, text,
                                           schema.get("enum"), target(schema.get("items", {})).get("type"))
                          for key, schema, text, _ in fields}
            if (properties := complete(properties, required)) is not None:
                yield "github " + operation["operationId"].split("/")[0], definition(
                    operation["operationId"], operation.get("description") or operation.get("summary"), properties, required)


def from_discovery(folder):
    def methods(node):
        yield from node.get("methods", {}).values()
        for part in node.get("resources", {}).values():
            yield from methods(part)

    for path in sorted(folder.glob("*.json")):
        for method in methods(json.loads(path.read_text())):
            parameters = method.get("parameters", {})
            required = [key for key, value in parameters.items() if value.get("required")]
            properties = {key: property_of(value.get("type"), value.get("description"), value.get("enum"))
                          for key, value in parameters.items() if not value.get("repeated")}
            if (properties := complete(properties, required)) is not None:
                yield path.name.split(".")[0], definition(method["id"], method.get("description"), properties, required)


def all_definitions(unpacked):
    """Pairs of a service and a line of JSON, unique by name, in a fixed order. unpacked: RAW/x."""
    documents = "google-api-python-client/googleapiclient/discovery_cache/documents"
    names = set()
    for found in (from_openapi(unpacked / "octokit-openapi/package/generated/api.github.com.json"),
                  from_botocore(unpacked / "botocore"), from_discovery(unpacked / documents)):
        for service, line in found:
            name = line and json.loads(line)["name"]
            if line and name not in names:
                names.add(name)
                yield service, line


def is_held_out(service):
    """One service in sixteen is never trained on, by its name."""
    return int(hashlib.sha256(service.encode()).hexdigest(), 16) % 16 == 0
