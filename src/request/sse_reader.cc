#include "request/sse_reader.h"

namespace deepinfer {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

Status SseReader::Feed(std::string_view piece, FunctionRef<void(const SseEvent&)> take) {
  if (after_cr_ && !piece.empty()) {  // CRLF, cut in the middle
    if (piece.front() == '\n') piece.remove_prefix(1);
    after_cr_ = false;
  }
  while (!piece.empty()) {
    const size_t end = piece.find_first_of("\r\n");
    const std::string_view text = piece.substr(0, end);
    if (line_.size() + text.size() + data_.size() > event_bytes_max_) {
      return ResourceExhausted("server-sent event: more than ", event_bytes_max_, " bytes");
    }
    if (end == std::string_view::npos) {
      line_ += text;
      return OkStatus();
    }
    if (line_.empty()) {
      TakeLine(text, take);
    } else {
      line_ += text;
      TakeLine(line_, take);
      line_.clear();
    }
    const bool is_cr = piece[end] == '\r';
    piece.remove_prefix(end + 1);
    if (is_cr && piece.empty()) after_cr_ = true;
    if (is_cr && !piece.empty() && piece.front() == '\n') piece.remove_prefix(1);
  }
  return OkStatus();
}

void SseReader::TakeLine(std::string_view line, FunctionRef<void(const SseEvent&)> take) {
  if (at_start_ && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  at_start_ = false;
  if (line.empty()) {
    if (has_data_) take({.name = name_, .data = data_});
    name_.clear();
    data_.clear();
    has_data_ = false;
    return;
  }
  const size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == line.npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (colon == 0) ++num_comments_;
  if (field == "event") name_ = value;
  if (field == "data") {
    if (has_data_) data_ += '\n';
    data_ += value;
    has_data_ = true;
  }
}

}  // namespace deepinfer
