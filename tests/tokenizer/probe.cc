// tests/tokenizer/probe.cc: our tokenizer behind a pipe, for comparison with other libraries.
//
// usage: tokenizer_probe MODE TOKENIZER.json < records > records
//   encode        text -> ids                    encode-plain  the same without added tokens
//   decode        ids -> text                    decode-skip   the same without special tokens
//   stream        text -> text, through ids and the streaming detokenizer, checked at every split
//   keys          text -> engram key             classes       (no input) -> one record, the class
//   table
// A record is a uint32 count and that many bytes of text or int32 ids, little-endian.

#include <cstdio>
#include <iostream>
#include <iterator>

#include "base/disk.h"
#include "tokens/detokenizer.h"
#include "tokens/engram_classes.h"
#include "tokens/engram_key.h"
#include "tokens/tokenizer.h"

namespace deepinfer {
namespace {

using Ids = std::vector<int32_t>;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "tokenizer_probe: %s\n", what.c_str());
  std::exit(1);
}

// Takes the next record of `count` elements of T off `input`.
template <typename T>
std::vector<T> Take(std::string_view& input) {
  uint32_t count = 0;
  if (input.size() < sizeof count) Fail("input ends in a record's count");
  std::memcpy(&count, input.data(), sizeof count);
  input.remove_prefix(sizeof count);
  if (input.size() < count * sizeof(T)) Fail("input ends inside a record");
  std::vector<T> elements(count);
  if (count > 0) std::memcpy(elements.data(), input.data(), count * sizeof(T));
  input.remove_prefix(count * sizeof(T));
  return elements;
}

template <typename Container>
void Put(const Container& elements) {
  const auto count = static_cast<uint32_t>(elements.size());
  std::fwrite(&count, sizeof count, 1, stdout);
  if (count > 0) std::fwrite(elements.data(), sizeof elements[0], count, stdout);
}

bool IsUtf8(std::string_view text) {
  std::string repaired;
  return RepairUtf8(text, repaired).data() == text.data();
}

// Whatever has come out after k ids is UTF-8, and the rest of the ids gives the rest of the text.
std::string StreamChecked(const Tokenizer& tokenizer, const Ids& ids) {
  const std::string whole = tokenizer.Decode(ids);
  Detokenizer detokenizer(tokenizer);
  std::string text;
  for (size_t k = 0; k < ids.size(); ++k) {
    const std::string piece = detokenizer.Add(ids[k]);
    if (!IsUtf8(piece)) Fail(StrCat("half a character came out with id ", k));
    text += piece;
    if (!std::string_view(whole).starts_with(text)) Fail(StrCat("wrong text after id ", k));
  }
  text += detokenizer.Finish();
  if (text != whole) Fail("streamed text is not the decoded text");
  return text;
}

int Main(const std::string& mode, const std::string& path) {
  const auto loaded = Tokenizer::Load(RealDisk(), path);
  if (!loaded.ok()) Fail(MessageOf(loaded.status()));
  const Tokenizer& tokenizer = **loaded;
  if (mode == "classes") {
    Put(ComputeEngramClasses(tokenizer, tokenizer.vocab_size()));
    return 0;
  }
  const std::string all{std::istreambuf_iterator<char>(std::cin), {}};
  for (std::string_view input = all; !input.empty();) {
    if (mode == "decode" || mode == "decode-skip") {
      Put(tokenizer.Decode(Take<int32_t>(input), mode == "decode-skip"));
      continue;
    }
    const std::vector<char> bytes = Take<char>(input);
    const std::string_view text(bytes.data(), bytes.size());
    if (mode == "encode") {
      Put(tokenizer.Encode(text));
    } else if (mode == "encode-plain") {
      Put(tokenizer.Encode(text, {.added_tokens = false}));
    } else if (mode == "stream") {
      Put(StreamChecked(tokenizer, tokenizer.Encode(text)));
    } else if (mode == "keys") {
      Put(EngramKey(text));
    } else {
      Fail("unknown mode " + mode);
    }
  }
  return 0;
}

}  // namespace
}  // namespace deepinfer

int main(int argc, char** argv) {
  if (argc != 3) deepinfer::Fail("usage: tokenizer_probe MODE TOKENIZER.json");
  return deepinfer::Main(argv[1], argv[2]);
}
