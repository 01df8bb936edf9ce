// The input is tokenizer.json if it begins with "{". Else its first four lines are put into a small
// one: added tokens, steps of the pre-tokenizer, vocabulary beyond the bytes, merges.
#include "fuzz.h"
#include "tokens/byte_alphabet.h"
#include "tokens/detokenizer.h"
#include "tokens/json.h"
#include "tokens/tokenizer.h"
#include "tokens/utf8.h"

namespace deepinfer::fuzz {
namespace {

// Short, because a pattern of the file may take time exponential in it.
constexpr std::string_view kText = "Hello,  h\u00e9 12\n\t\U0001F600<s> a";
constexpr size_t kMaxTextBytes = 32;
constexpr int32_t kMaxIds = 600;

// `"\u0100": 0, ..., ` of all bytes.
std::string ByteEntries() {
  std::string entries;
  for (int byte = 0; byte < 256; ++byte) {
    if (byte > 0) entries += ", ";
    AppendJsonString(SpellBytes(std::string(1, static_cast<char>(byte))), entries);
    entries += StrCat(": ", byte);
  }
  return entries;
}

std::string WithComma(std::string_view text, bool before) {
  if (text.empty()) return "";
  return before ? StrCat(", ", text) : StrCat(text, ", ");
}

std::string TokenizerJson(std::string_view input) {
  if (input.starts_with('{')) return std::string(input);
  std::string_view lines[4];
  for (std::string_view& line : lines) {
    const size_t end = std::min(input.find('\n'), input.size());
    line = input.substr(0, end);
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  static const std::string& bytes = *new std::string(ByteEntries());
  return StrCat(R"({"added_tokens": [)", lines[0],
                R"(], "pre_tokenizer": {"type": "Sequence", "pretokenizers": [)",
                WithComma(lines[1], /*before=*/false),
                R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},)",
                R"("decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {)", bytes,
                WithComma(lines[2], /*before=*/true), R"(}, "merges": [)", lines[3], "]}}");
}

void CheckVocabulary(const Tokenizer& tokenizer) {
  std::vector<int32_t> ids = {-1, tokenizer.vocab_size()};  // ids without a token give nothing
  for (int32_t id = 0; id < std::min(tokenizer.vocab_size(), kMaxIds); ++id) {
    ids.push_back(id);
    if (tokenizer.HasId(id)) CHECK(tokenizer.IdOf(tokenizer.TokenText(id)) == id);
    CHECK(tokenizer.HasId(id) || tokenizer.BytesOf(id).empty());
  }
  Detokenizer detokenizer(tokenizer);
  std::string streamed;
  for (const int32_t id : ids) {
    streamed += detokenizer.Add(id);
    CHECK_LE(detokenizer.pending_bytes(), 3);
  }
  streamed += detokenizer.Finish();
  CHECK_EQ(streamed, tokenizer.Decode(ids));
}

// exact: no added token takes the blanks around it.
void CheckRoundTrip(const Tokenizer& tokenizer, std::string_view text, bool exact) {
  const std::vector<int32_t> plain = tokenizer.Encode(text, {.added_tokens = false});
  for (const int32_t id : plain) CHECK(tokenizer.HasId(id) && !tokenizer.IsAdded(id));
  CHECK_EQ(tokenizer.Decode(plain), text);
  const std::vector<int32_t> ids = tokenizer.Encode(text);
  for (const int32_t id : ids) CHECK(tokenizer.HasId(id));
  if (exact) CHECK_EQ(tokenizer.Decode(ids), text);
}

}  // namespace
}  // namespace deepinfer::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace deepinfer;
  const std::string_view input = fuzz::AsText(data, size);
  const auto tokenizer = Tokenizer::Parse(fuzz::TokenizerJson(input), "tokenizer.json");
  if (!tokenizer.ok()) {
    fuzz::CheckRefusal(tokenizer.status());
    return 0;
  }
  fuzz::CheckVocabulary(**tokenizer);
  // No key is called lstrip or rstrip, not even in escapes.
  const bool exact = input.find("strip") == input.npos && input.find('\\') == input.npos;
  fuzz::CheckRoundTrip(**tokenizer, fuzz::kText, exact);
  std::string repaired;  // the input holds the added tokens' texts
  const std::string_view own = RepairUtf8(input.substr(0, fuzz::kMaxTextBytes), repaired);
  fuzz::CheckRoundTrip(**tokenizer, own, exact);
  return 0;
}
