// The traces of serve_traffic.h.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "apps/serve_traffic.h"
#include "tokens/json.h"

namespace deepinfer {
namespace {

constexpr std::string_view kCsvHead = "TIMESTAMP,ContextTokens,GeneratedTokens";
constexpr int64_t kMostTokens = int64_t{1} << 30;

// One line of a trace, of either kind.
struct TraceLine {
  double time_s = 0;
  int64_t prompt_tokens = 0, output_tokens = 0;
  std::vector<uint64_t> hash_ids;
};

template <typename T>
bool ReadNumber(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// A member that must be a number >= 0.
template <typename T>
Status ReadMember(const JsonValue& line, const char* key, T& number) {
  const JsonValue* const value = line.Find(key);
  if (value == nullptr || value->kind != JsonValue::Kind::kNumber ||
      !ReadNumber(value->text, number) || number < 0) {
    return InvalidArgument("expected \"", key, "\" with a number of at least 0");
  }
  return OkStatus();
}

StatusOr<TraceLine> ReadJsonLine(std::string_view text) {
  DI_ASSIGN_OR_RETURN(const JsonValue json, ParseJson(text));
  TraceLine line;
  DI_RETURN_IF_ERROR(ReadMember(json, "timestamp", line.time_s));
  line.time_s *= 1e-3;
  DI_RETURN_IF_ERROR(ReadMember(json, "input_length", line.prompt_tokens));
  DI_RETURN_IF_ERROR(ReadMember(json, "output_length", line.output_tokens));
  if (const JsonValue* const ids = json.Find("hash_ids"); ids != nullptr) {
    for (const JsonValue& id : ids->items) {
      if (!ReadNumber(id.text, line.hash_ids.emplace_back())) {
        return InvalidArgument("\"hash_ids\": expected numbers of at least 0");
      }
    }
  }
  return line;
}

// "2023-11-16 18:17:03.9799600" -> seconds since 1970.
bool ReadTime(const std::string& text, double& time_s) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, used = 0;
  double second = 0;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2d %2d:%2d:%lf%n", &year, &month, &day, &hour, &minute,
                  &second, &used) != 6 ||
      static_cast<size_t>(used) != text.size()) {
    return false;
  }
  const auto date = std::chrono::year(year) / month / day;
  if (!date.ok() || !(second >= 0 && second < 61)) return false;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  time_s = static_cast<double>((days * 24 + hour) * 60 + minute) * 60 + second;
  return true;
}

StatusOr<TraceLine> ReadCsvLine(std::string_view text) {
  const size_t first = text.find(','), second = text.find(',', first + 1);
  TraceLine line;
  if (first == text.npos || second == text.npos ||
      !ReadTime(std::string(text.substr(0, first)), line.time_s) ||
      !ReadNumber(text.substr(first + 1, second - first - 1), line.prompt_tokens) ||
      !ReadNumber(text.substr(second + 1), line.output_tokens)) {
    return InvalidArgument("found \"", text, "\", expected a time and two numbers: ", kCsvHead);
  }
  return line;
}

Status CheckLine(const TraceLine& line, const TraceOptions& options) {
  if (line.prompt_tokens < 0 || line.prompt_tokens > kMostTokens || line.output_tokens < 0 ||
      line.output_tokens > kMostTokens) {
    return InvalidArgument("token counts are not in 0..", kMostTokens);
  }
  const int64_t num_blocks = (line.prompt_tokens + options.block_tokens - 1) / options.block_tokens;
  if (!line.hash_ids.empty() && std::ssize(line.hash_ids) != num_blocks) {
    return InvalidArgument(line.hash_ids.size(), " hash_ids, but ", line.prompt_tokens,
                           " tokens are ", num_blocks, " blocks of ", options.block_tokens,
                           "; does --trace-block-tokens fit?");
  }
  return OkStatus();
}

int32_t Scaled(int64_t length, double scale) {
  return static_cast<int32_t>(std::max(1.0, std::round(static_cast<double>(length) * scale)));
}

PlannedRequest Plan(const TraceLine& line, uint64_t own_id, const TraceOptions& options) {
  PlannedRequest request{.output_tokens = Scaled(line.output_tokens, options.length_scale)};
  int32_t left = Scaled(line.prompt_tokens, options.length_scale);
  if (line.hash_ids.empty()) request.prompt.push_back({own_id, left});
  const int32_t block = Scaled(options.block_tokens, options.length_scale);
  for (size_t i = 0; i < line.hash_ids.size() && left > 0; ++i) {
    const bool is_last = i + 1 == line.hash_ids.size();
    request.prompt.push_back({line.hash_ids[i], is_last ? left : std::min(left, block)});
    left -= request.prompt.back().num_tokens;
  }
  return request;
}

class TraceTraffic : public ServeTraffic {
 public:
  TraceTraffic(std::vector<TraceLine> lines, const TraceOptions& options)
      : lines_(std::move(lines)), options_(options) {}

  std::optional<PlannedRequest> Next() override {
    const bool is_cut = options_.num_requests > 0 && std::ssize(lines_) > options_.num_requests;
    const size_t end = is_cut ? static_cast<size_t>(options_.num_requests) : lines_.size();
    if (next_ == end) return std::nullopt;
    const TraceLine& line = lines_[next_];
    // Prompts without hash ids: ids of their own, far from those that traces count from 0.
    PlannedRequest request = Plan(line, (uint64_t{1} << 62) + next_++, options_);
    request.due_s = (line.time_s - lines_[0].time_s) / options_.speed;
    return request;
  }

 private:
  const std::vector<TraceLine> lines_;
  const TraceOptions options_;
  size_t next_ = 0;
};

}  // namespace

StatusOr<std::unique_ptr<ServeTraffic>> ReadTrace(Disk& disk, const std::string& path,
                                                  const TraceOptions& options) {
  DI_ASSIGN_OR_RETURN(const std::string text, disk.ReadText(path));
  std::vector<TraceLine> lines;
  bool is_csv = false;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view row(text.data() + begin, end - begin);
    begin = end + 1;
    ++number;
    while (!row.empty() && (row.back() == '\r' || row.back() == ' ')) row.remove_suffix(1);
    if (number == 1 && row == kCsvHead) is_csv = true;
    if (row.empty() || (is_csv && number == 1)) continue;
    auto line = is_csv ? ReadCsvLine(row) : ReadJsonLine(row);
    Status status = line.status();
    if (status.ok()) status = CheckLine(*line, options);
    DI_RETURN_IF_ERROR(Annotate(status, path, ", line ", number));
    lines.push_back(*std::move(line));
  }
  if (lines.empty()) return InvalidArgument(path, ": expected a trace, found no requests");
  std::stable_sort(lines.begin(), lines.end(),
                   [](const TraceLine& a, const TraceLine& b) { return a.time_s < b.time_s; });
  return std::make_unique<TraceTraffic>(std::move(lines), options);
}

}  // namespace deepinfer
