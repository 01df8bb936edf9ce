// model/json_object.h: reading one JSON object key by key with messages that name the key.
//
// The first fault is kept in a Status shared by an object and its children; later calls then do
// nothing. Keys that were asked for are remembered, so that the rest can be reported as unknown.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "base/status.h"

namespace deepinfer {

// Errors: kInvalidArgument with the byte where the text stops being JSON, for a number beyond F64's
// range and for nesting deeper than 256 levels.
Status ParseJsonText(std::string_view text, std::string_view where, nlohmann::json* out);
// A file that holds one JSON object. Errors: as Disk::ReadText and ParseJsonText, naming the file.
Status ReadJsonObject(Disk& disk, const std::string& path, nlohmann::json* out);

// A whole number, which may be spelled 10.0; nothing for other values and beyond 64 bits.
std::optional<int64_t> AsInteger(const nlohmann::json& value);
// A value for a message, cut where it is long; ASCII.
std::string ShortText(const nlohmann::json& value);

class JsonObject {
 public:
  // `where` names the object in messages: "config.json" gives "config.json: key: ...". The others
  // outlive this object. Requires: object.is_object().
  JsonObject(const nlohmann::json& object, std::string_view where, Status* status)
      : JsonObject(object, status, StrCat(where, ": ")) {}

  bool ok() const { return status_->ok(); }
  bool Has(std::string_view key) const;       // present and not null
  bool Contains(std::string_view key) const;  // present, null or not

  // Required keys. Whole numbers may be spelled 10.0.
  void Read(std::string_view key, int32_t* out, int64_t min, int64_t max);
  void Read(std::string_view key, int64_t* out, int64_t min, int64_t max);
  void Read(std::string_view key, double* out, double min, double max);
  void Read(std::string_view key, bool* out);
  void Read(std::string_view key, std::string* out);
  void Read(std::string_view key, std::vector<int32_t>* out, int64_t min, int64_t max);
  void Read(std::string_view key, std::vector<int64_t>* out, int64_t min, int64_t max);
  void Read(std::string_view key, std::vector<double>* out, double min, double max);
  void Expect(std::string_view key, const nlohmann::json& value);  // required, this value only
  void ExpectIfPresent(std::string_view key, const nlohmann::json& value);
  void Ignore(std::initializer_list<std::string_view> keys);  // informational: any value
  std::optional<JsonObject> Child(std::string_view key);      // a required object

  void Fail(std::string_view key, std::string_view expected, std::string_view found);
  // Keys nobody asked for: the first fault if `strict`, else one warning line.
  void Finish(bool strict);

  // The value as short text for a message.
  std::string Show(std::string_view key) const;

 private:
  JsonObject(const nlohmann::json& object, Status* status, std::string prefix)
      : object_(object), prefix_(std::move(prefix)), status_(status) {}
  const nlohmann::json* Find(std::string_view key);  // null and a fault when missing
  template <typename Int>
  void ReadList(std::string_view key, std::vector<Int>* out, int64_t min, int64_t max);

  const nlohmann::json& object_;
  std::string prefix_;  // in front of keys: "config.json: text_config."
  Status* status_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace deepinfer
