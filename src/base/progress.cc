#include "base/progress.h"

#include <unistd.h>

#include <cstdio>

#include "base/strings.h"

namespace deepinfer {
namespace {

using std::chrono::milliseconds;

// The first line comes late enough that short work stays silent.
constexpr Duration kTerminalFirst = milliseconds(500), kTerminalPeriod = milliseconds(200);
constexpr Duration kLineFirst = milliseconds(3000), kLinePeriod = milliseconds(5000);

std::string OneDecimal(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.1f", value);
  return buffer;
}

std::string DurationText(double seconds) {
  const int64_t whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 120) return StrCat(whole, " s");
  if (whole < 7200) return StrCat(whole / 60, " min ", whole % 60, " s");
  return StrCat(whole / 3600, " h ", whole / 60 % 60, " min");
}

// Slow rates keep a decimal; counts are whole anyway.
std::string CountText(double count, const std::string& unit) {
  if (unit == "bytes") return BytesText(count);
  const int64_t rounded = static_cast<int64_t>(count + 0.5);
  const bool whole = count >= 10 || count == static_cast<double>(rounded);
  return StrCat(whole ? StrCat(rounded) : OneDecimal(count), " ", unit);
}

}  // namespace

std::string BytesText(double bytes) {
  const char* const units[] = {"B", "KB", "MB", "GB", "TB", "PB"};
  size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < std::size(units); ++unit) bytes /= 1000;
  return StrCat(unit == 0 ? StrCat(static_cast<int64_t>(bytes)) : OneDecimal(bytes), " ",
                units[unit]);
}

ProgressOutput ProgressOutput::Stderr() {
  return {.terminal = ::isatty(STDERR_FILENO) != 0, .write = [](std::string_view text) {
            std::fwrite(text.data(), 1, text.size(), stderr);
            std::fflush(stderr);
          }};
}

Progress::Progress(std::string what, std::string unit, int64_t total, Clock& clock,
                   ProgressOutput output)
    : what_(std::move(what)),
      unit_(std::move(unit)),
      total_(total),
      clock_(clock),
      output_(std::move(output)),
      start_(clock.Now()),
      next_print_ns_((start_ + (output_.terminal ? kTerminalFirst : kLineFirst)).ns) {}

Progress::~Progress() {
  if (shown_) Print(clock_.Now(), /*finished=*/true);
}

void Progress::Add(int64_t count) {
  done_.fetch_add(count, std::memory_order_relaxed);
  const MonotonicTime now = clock_.Now();
  if (now.ns < next_print_ns_.load(std::memory_order_relaxed)) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || now.ns < next_print_ns_.load(std::memory_order_relaxed)) return;
  next_print_ns_.store((now + (output_.terminal ? kTerminalPeriod : kLinePeriod)).ns,
                       std::memory_order_relaxed);
  Print(now, /*finished=*/false);
}

std::string Progress::Line(MonotonicTime now, bool finished) const {
  const double done = static_cast<double>(done_.load(std::memory_order_relaxed));
  const double total = static_cast<double>(total_);
  const double seconds = Seconds(now - start_);
  const double rate = seconds > 0 ? done / seconds : 0;
  std::string line = StrCat(what_, ": ", CountText(done, unit_));
  if (total_ > 0 && !finished) {
    line += StrCat(" of ", CountText(total, unit_), " (", static_cast<int64_t>(100 * done / total),
                   "%)");
  }
  line += StrCat(", ", CountText(rate, unit_), "/s");
  if (finished) return StrCat(line, ", ", DurationText(seconds));
  if (total_ > 0 && rate > 0 && done < total) {
    line += StrCat(", ", DurationText((total - done) / rate), " left");
  }
  return line;
}

void Progress::Print(MonotonicTime now, bool finished) {
  shown_ = true;
  const std::string line = Line(now, finished);
  // On a terminal: to the line's start, the text, then the rest of the old text is erased.
  output_.write(output_.terminal ? StrCat("\r", line, "\x1b[K", finished ? "\n" : "")
                                 : StrCat(line, "\n"));
}

}  // namespace deepinfer
