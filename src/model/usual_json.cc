#include "model/usual_json.h"

#include <simdjson.h>

#include <cstdint>

namespace deepinfer {
namespace {

namespace dom = simdjson::dom;

constexpr size_t kMaxDepth = 16;  // deeper is not usual

// The whole text, which is an object. The document belongs to the parser.
std::optional<dom::object> ParseObject(dom::parser& parser, std::string_view text) {
  dom::object object;
  if (parser.allocate(text.size(), kMaxDepth) != simdjson::SUCCESS ||
      parser.parse(text.data(), text.size()).get(object) != simdjson::SUCCESS) {
    return {};
  }
  return object;
}

bool ReadSizes(dom::element value, std::vector<int64_t>& out) {
  dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return false;
  out.clear();
  for (const dom::element element : list) {
    uint64_t size = 0;
    if (element.get(size) != simdjson::SUCCESS || size > INT64_MAX) return false;
    out.push_back(static_cast<int64_t>(size));
  }
  return true;
}

bool ReadEntry(dom::element value, HeaderEntry& out) {
  dom::object members;
  if (value.get(members) != simdjson::SUCCESS) return false;
  bool has_dtype = false, has_shape = false, has_offsets = false;
  for (const dom::key_value_pair member : members) {
    if (member.key == "dtype") {
      std::string_view dtype;
      has_dtype = member.value.get(dtype) == simdjson::SUCCESS;
      if (!has_dtype) return false;
      out.dtype = dtype;
    } else if (member.key == "shape") {
      has_shape = ReadSizes(member.value, out.shape);
      if (!has_shape) return false;
    } else if (member.key == "data_offsets") {
      has_offsets = ReadSizes(member.value, out.data_offsets);
      if (!has_offsets) return false;
    }
  }
  return has_dtype && has_shape && has_offsets;
}

}  // namespace

std::optional<std::vector<HeaderEntry>> ReadUsualHeader(std::string_view text) {
  dom::parser parser;
  const std::optional<dom::object> object = ParseObject(parser, text);
  if (!object) return {};
  std::vector<HeaderEntry> entries;
  entries.reserve(object->size());
  for (const dom::key_value_pair member : *object) {
    if (member.key == "__metadata__") continue;
    HeaderEntry& entry = entries.emplace_back();
    entry.name = member.key;
    if (!ReadEntry(member.value, entry)) return {};
  }
  return entries;
}

std::optional<std::vector<std::pair<std::string, std::string>>> ReadUsualIndex(
    std::string_view text) {
  dom::parser parser;
  const std::optional<dom::object> object = ParseObject(parser, text);
  if (!object) return {};
  std::vector<std::pair<std::string, std::string>> files;
  for (const dom::key_value_pair member : *object) {
    if (member.key != "weight_map") continue;
    dom::object map;
    if (member.value.get(map) != simdjson::SUCCESS) return {};
    files.reserve(files.size() + map.size());
    for (const dom::key_value_pair tensor : map) {
      std::string_view file;
      if (tensor.value.get(file) != simdjson::SUCCESS) return {};
      files.emplace_back(tensor.key, file);
    }
  }
  return files;
}

}  // namespace deepinfer
