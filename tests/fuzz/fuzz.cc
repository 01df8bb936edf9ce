#include "fuzz.h"

#include <algorithm>

#include "base/disk.h"
#include "base/log.h"
#include "tokens/utf8.h"

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  deepinfer::SetLogLevel(deepinfer::LogLevel::kOff);
  return 0;
}

namespace deepinfer::fuzz {

bool IsUtf8(std::string_view text) {
  std::string repaired;
  return RepairUtf8(text, repaired).data() == text.data();
}

void CheckLine(std::string_view line) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  const bool one_line = std::none_of(line.begin(), line.end(), is_control);
  if (line.empty() || !one_line || !IsUtf8(line)) {
    CheckFailed(__FILE__, __LINE__, StrCat("not a line for people: ", line));
  }
}

void CheckRefusal(const Status& status) {
  CHECK(!status.ok());
  CheckLine(MessageOf(status));
}

std::vector<std::string_view> Cut(std::string_view text, uint64_t salt) {
  uint64_t state = salt + 0x9E3779B97F4A7C15u;
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    state = (state ^ static_cast<unsigned char>(text[0])) * 6364136223846793005u + 1;
    const size_t length = std::min<size_t>(text.size(), 1 + (state >> 61));
    pieces.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return pieces;
}

std::string RepositoryFile(const std::string& path) {
  StatusOr<std::string> text = RealDisk().ReadText(StrCat(DI_SOURCE_DIR "/", path));
  if (!text.ok()) CheckFailed(__FILE__, __LINE__, MessageOf(text.status()));
  return *std::move(text);
}

const Tokenizer& TinyTokenizer() {
  static const auto* const tokenizer = new std::unique_ptr<Tokenizer>(
      *Tokenizer::Parse(RepositoryFile("tools/tiny/tokenizer.json"), "tokenizer.json"));
  return **tokenizer;
}

}  // namespace deepinfer::fuzz
