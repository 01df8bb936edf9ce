// request/sse_reader.h: server-sent events read from a stream that comes in pieces.
//
// Source: WHATWG HTML, section 9.2.6. Lines end with LF, CR or CRLF; an empty line ends an event;
// lines that begin with ':' are comments; `id` and `retry` mean nothing here. For clients: the load
// generator and tests. Threads: one at a time per object.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "base/status.h"

namespace deepinfer {

struct SseEvent {
  std::string_view name;  // of its `event` line; empty: none
  std::string_view data;  // of its `data` lines, joined by LF
};

class SseReader {
 public:
  explicit SseReader(size_t event_bytes_max = size_t{64} << 20)
      : event_bytes_max_(event_bytes_max) {}

  // Calls `take` for each event that ends in `piece`; its texts are valid during that call.
  // Errors: kResourceExhausted for an event beyond the limit; then nothing can follow.
  Status Feed(std::string_view piece, FunctionRef<void(const SseEvent&)> take);
  // Comment lines so far: servers keep a silent stream alive with them.
  int64_t num_comments() const { return num_comments_; }

 private:
  void TakeLine(std::string_view line, FunctionRef<void(const SseEvent&)> take);

  const size_t event_bytes_max_;
  std::string line_;  // begun by an earlier piece
  bool after_cr_ = false, at_start_ = true;
  std::string name_, data_;
  bool has_data_ = false;
  int64_t num_comments_ = 0;
};

}  // namespace deepinfer
