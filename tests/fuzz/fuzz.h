// tests/fuzz/fuzz.h: what the fuzzers share.
//
// A fuzzer is one function, LLVMFuzzerTestOneInput. It gives the bytes to a reader of text that we
// did not write and checks what must hold of every answer: a broken property is a CHECK, as fatal
// as a bad access. With clang it is linked with libFuzzer (run.sh); everywhere else replay_main.cc
// feeds it the files of corpus/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "tokens/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Keeps the log silent. libFuzzer and replay_main.cc call it first.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);

namespace deepinfer::fuzz {

inline std::string_view AsText(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

bool IsUtf8(std::string_view text);

// A line for people: not empty, UTF-8, no control characters.
void CheckLine(std::string_view line);
// Requires: !status.ok(). Its message must be such a line.
void CheckRefusal(const Status& status);

// The text in pieces of 1 to 8 bytes, which follow from its content and `salt`.
std::vector<std::string_view> Cut(std::string_view text, uint64_t salt);

// A file of the repository; the path is relative to its root.
std::string RepositoryFile(const std::string& path);
// Of the tiny checkpoint (tools/tiny); it has every control token.
const Tokenizer& TinyTokenizer();

}  // namespace deepinfer::fuzz
