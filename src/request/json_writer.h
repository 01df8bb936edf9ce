// request/json_writer.h: JSON text written front to back, for answers. Commas are put in by itself.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "tokens/json.h"

namespace deepinfer {

class JsonWriter {
 public:
  JsonWriter& Object() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& Array() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }

  // The next value is this member's.
  JsonWriter& Key(std::string_view key) {
    Separate();
    AppendJsonString(key, out_);
    out_ += ':';
    comma_ = false;
    return *this;
  }
  // `text` is UTF-8.
  JsonWriter& String(std::string_view text) {
    Separate();
    AppendJsonString(text, out_);
    return *this;
  }
  JsonWriter& Bool(bool value) { return Raw(value ? "true" : "false"); }
  JsonWriter& Null() { return Raw("null"); }
  template <std::integral T>
  JsonWriter& Int(T value) {
    Separate();
    AppendText(out_, value);
    return *this;
  }
  // null if it is not finite.
  JsonWriter& Number(double value) {
    if (!std::isfinite(value)) return Null();
    Separate();
    char text[32];
    out_.append(text, std::to_chars(text, text + sizeof text, value).ptr);
    return *this;
  }
  // A value that is JSON already.
  JsonWriter& Raw(std::string_view json) {
    Separate();
    out_ += json;
    return *this;
  }

  std::string Take() {
    comma_ = false;
    return std::exchange(out_, {});
  }

 private:
  JsonWriter& Open(char bracket) {
    Separate();
    out_ += bracket;
    comma_ = false;
    return *this;
  }
  JsonWriter& Close(char bracket) {
    out_ += bracket;
    comma_ = true;
    return *this;
  }
  void Separate() {
    if (comma_) out_ += ',';
    comma_ = true;
  }

  std::string out_;
  bool comma_ = false;
};

}  // namespace deepinfer
