#include "model/header_json.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "base/strings.h"
#include "model/json_object.h"
#include "model/usual_json.h"

namespace deepinfer {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 256;

std::string_view Container(bool is_object) { return is_object ? "an object" : "an array"; }

// The library's events as three; the first fault ends the reading.
class Events : public nlohmann::json_sax<json> {
 public:
  // Reads all of the text. Errors: see header_json.h.
  Status Read(std::string_view text, std::string_view where) {
    // The library takes a NUL for the end of the text, whatever follows.
    const size_t nul = text.find('\0');
    const bool whole =
        nul == text.npos && json::sax_parse(text, static_cast<json_sax<json>*>(this));
    if (!fault_.ok()) return fault_;
    if (is_too_large_) {
      return InvalidArgument(where, ": a number is too large for 64-bit floating point");
    }
    if (whole) return OkStatus();
    return InvalidArgument(where, ": not JSON: broken at byte ",
                           nul == text.npos ? broken_at_ : nul + 1, " of ", text.size());
  }

 protected:
  // depth(): containers around the value or key. Begin and End are told with the depth outside.
  virtual Status Scalar(json&& value) = 0;
  virtual Status Begin(bool is_object) = 0;
  virtual Status End() = 0;
  virtual Status Key(std::string&& key) = 0;
  int depth() const { return depth_; }

 private:
  bool Take(Status status) {
    if (fault_.ok()) fault_ = std::move(status);
    return fault_.ok();
  }
  bool BeginContainer(bool is_object) {
    if (depth_ == kMaxDepth) {
      return Take(InvalidArgument("nested deeper than ", kMaxDepth, " levels"));
    }
    const bool goes_on = Take(Begin(is_object));
    ++depth_;
    return goes_on;
  }
  bool EndContainer() {
    --depth_;
    return Take(End());
  }

  bool null() override { return Take(Scalar({})); }
  bool boolean(bool value) override { return Take(Scalar(value)); }
  bool number_integer(json::number_integer_t value) override { return Take(Scalar(value)); }
  bool number_unsigned(json::number_unsigned_t value) override { return Take(Scalar(value)); }
  bool number_float(json::number_float_t value, const std::string&) override {
    return Take(Scalar(value));
  }
  bool string(std::string& value) override { return Take(Scalar(std::move(value))); }
  bool binary(json::binary_t&) override { return false; }  // not in text
  bool start_object(size_t) override { return BeginContainer(true); }
  bool key(std::string& value) override { return Take(Key(std::move(value))); }
  bool end_object() override { return EndContainer(); }
  bool start_array(size_t) override { return BeginContainer(false); }
  bool end_array() override { return EndContainer(); }
  bool parse_error(size_t position, const std::string&, const json::exception& error) override {
    is_too_large_ = dynamic_cast<const json::out_of_range*>(&error) != nullptr;
    broken_at_ = position;
    return false;
  }

  int depth_ = 0;
  Status fault_;
  bool is_too_large_ = false;
  size_t broken_at_ = 0;
};

class HeaderEvents : public Events {
 public:
  std::vector<HeaderEntry> entries;

 private:
  Status Key(std::string&& key) override {
    if (depth() == 1) {
      is_entry_ = key != "__metadata__";
      if (!is_entry_) return OkStatus();
      entries.push_back({.name = std::move(key)});
      has_dtype_ = has_shape_ = has_offsets_ = false;
    } else if (depth() == 2) {
      member_ = std::move(key);
      list_ = member_ == "shape"          ? &HeaderEntry::shape
              : member_ == "data_offsets" ? &HeaderEntry::data_offsets
                                          : nullptr;
    }
    return OkStatus();
  }

  Status Begin(bool is_object) override {
    if (depth() == 0) return is_object ? OkStatus() : NotAnObject();
    if (!is_entry_) return OkStatus();
    if (depth() == 1) return is_object ? OkStatus() : Fault("not an object");
    if (depth() == 2 && list_ != nullptr && !is_object) {
      (entries.back().*list_).clear();
      (list_ == &HeaderEntry::shape ? has_shape_ : has_offsets_) = true;
      return OkStatus();
    }
    if (depth() == 2 && list_ != nullptr) return Wrong("a list of whole numbers", "an object");
    if (depth() == 2 && member_ == "dtype") return Wrong("text", Container(is_object));
    if (depth() == 3 && list_ != nullptr) return WrongSize(Container(is_object));
    return OkStatus();
  }

  Status Scalar(json&& value) override {
    if (depth() == 0) return NotAnObject();
    if (!is_entry_) return OkStatus();
    if (depth() == 1) return Fault("not an object");
    if (depth() == 2 && list_ != nullptr) return Wrong("a list of whole numbers", ShortText(value));
    if (depth() == 2 && member_ == "dtype") {
      if (!value.is_string()) return Wrong("text", ShortText(value));
      entries.back().dtype = std::move(value.get_ref<std::string&>());
      has_dtype_ = true;
    } else if (depth() == 3 && list_ != nullptr) {
      const std::optional<int64_t> size = AsInteger(value);
      if (!size || *size < 0) return WrongSize(ShortText(value));
      (entries.back().*list_).push_back(*size);
    }
    return OkStatus();
  }

  Status End() override {
    if (depth() != 1 || !is_entry_) return OkStatus();
    if (!has_dtype_) return Fault("dtype: missing");
    if (!has_shape_) return Fault("shape: missing");
    if (!has_offsets_) return Fault("data_offsets: missing");
    return OkStatus();
  }

  static Status NotAnObject() { return InvalidArgument("the header is not a JSON object"); }
  Status Fault(std::string_view what) const {
    return InvalidArgument("header entry ", entries.back().name, ": ", what);
  }
  Status Wrong(std::string_view expected, std::string_view found) const {
    return Fault(StrCat(member_, ": expected ", expected, ", found ", found));
  }
  Status WrongSize(std::string_view found) const {
    return Fault(StrCat(member_, "[", (entries.back().*list_).size(),
                        "]: expected an integer in [0, ", INT64_MAX, "], found ", found));
  }

  bool is_entry_ = false;  // not __metadata__
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
  std::string member_;                             // the last key of an entry
  std::vector<int64_t> HeaderEntry::*list_ = nullptr;  // that the member fills; null: none
};

class IndexEvents : public Events {
 public:
  IndexEvents(std::string_view where,
              const std::function<Status(std::string&& tensor, std::string&& file)>& found)
      : where_(where), found_(found) {}

  int64_t num_members() const { return num_members_; }

 private:
  Status Key(std::string&& key) override {
    if (depth() == 1) is_map_ = key == "weight_map";
    if (depth() == 2) tensor_ = std::move(key);
    return OkStatus();
  }
  Status Begin(bool is_object) override {
    if (depth() == 1 && is_map_ && !is_object) is_map_ = false;
    if (depth() == 2 && is_map_) return Wrong(Container(is_object));
    return OkStatus();
  }
  Status Scalar(json&& value) override {
    if (depth() != 2 || !is_map_) return OkStatus();
    if (!value.is_string()) return Wrong(ShortText(value));
    ++num_members_;
    return found_(std::move(tensor_), std::move(value.get_ref<std::string&>()));
  }
  Status End() override { return OkStatus(); }

  Status Wrong(std::string_view found) const {
    return InvalidArgument(where_, ": weight_map.", tensor_,
                           ": expected the name of a file, found ", found);
  }

  const std::string_view where_;
  const std::function<Status(std::string&& tensor, std::string&& file)>& found_;
  bool is_map_ = false;
  int64_t num_members_ = 0;
  std::string tensor_;
};

}  // namespace

StatusOr<std::vector<HeaderEntry>> ReadHeaderJson(std::string_view text) {
  if (auto usual = ReadUsualHeader(text)) return *std::move(usual);
  return ReadHeaderByEvents(text);
}

StatusOr<std::vector<HeaderEntry>> ReadHeaderByEvents(std::string_view text) {
  HeaderEvents events;
  DI_RETURN_IF_ERROR(events.Read(text, "header"));
  return std::move(events.entries);
}

Status ReadIndexJson(std::string_view text, std::string_view where,
                     const std::function<Status(std::string&& tensor, std::string&& file)>& found) {
  if (auto usual = ReadUsualIndex(text); usual && !usual->empty()) {
    for (auto& [tensor, file] : *usual) {
      DI_RETURN_IF_ERROR(found(std::move(tensor), std::move(file)));
    }
    return OkStatus();
  }
  return ReadIndexByEvents(text, where, found);
}

Status ReadIndexByEvents(
    std::string_view text, std::string_view where,
    const std::function<Status(std::string&& tensor, std::string&& file)>& found) {
  IndexEvents events(where, found);
  DI_RETURN_IF_ERROR(events.Read(text, where));
  if (events.num_members() == 0) {
    return InvalidArgument(where, ": no weight_map; expected {\"weight_map\": {tensor: file}}");
  }
  return OkStatus();
}

}  // namespace deepinfer
