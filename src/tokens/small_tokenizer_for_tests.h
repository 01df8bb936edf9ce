// tokens/small_tokenizer_for_tests.h: a tokenizer.json small enough to know its ids by heart.
//
// Ids: 0 <s>, 1 </s>, 2 <pad> (special), 3 <think>, 4 </think>, 5 <image> (added, not special; 5 is
// not normalized either), 6 + b for byte b, then the merges from 262 in the order of kSmallMerges.
#pragma once

#include <string>
#include <string_view>

#include "tokens/byte_alphabet.h"

namespace deepinfer {

inline constexpr int32_t kSmallByteId = 6, kSmallMergeId = 262;

// Left and right, spelled (U+0120 is a blank). The last id is 262 + 10.
inline constexpr std::string_view kSmallMerges[][2] = {
    {"h", "e"},      {"l", "l"}, {"he", "ll"},      {"hell", "o"},
    {"\u0120", "w"}, {"o", "r"}, {"\u0120w", "or"}, {"\u0120", "\u0120"},
    {"1", "2"},      {"a", "a"}, {"e", "h"}};
inline constexpr int32_t kSmallVocabSize = 262 + 11;

inline std::string JsonText(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out + "\"";
}

inline std::string SmallTokenizerJson() {
  std::string vocab, merges;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string spelling = SpellBytes(std::string(1, static_cast<char>(byte)));
    vocab += JsonText(spelling) + ":" + std::to_string(kSmallByteId + byte) + ",";
  }
  int32_t id = kSmallMergeId;
  for (const auto& [left, right] : kSmallMerges) {
    vocab += JsonText(std::string(left) + std::string(right)) + ":" + std::to_string(id++) + ",";
    merges += JsonText(std::string(left) + " " + std::string(right)) + ",";
  }
  vocab.pop_back();
  merges.pop_back();
  return R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[
{"id":0,"content":"<s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},
{"id":1,"content":"</s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},
{"id":2,"content":"<pad>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},
{"id":3,"content":"<think>","single_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":false},
{"id":4,"content":"</think>","single_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":false},
{"id":5,"content":"<image>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":false}
],"normalizer":{"type":"Sequence","normalizers":[]},"pre_tokenizer":{"type":"Sequence","pretokenizers":[
{"type":"Split","pattern":{"Regex":"\\p{N}{1,2}"},"behavior":"Isolated","invert":false},
{"type":"Split","pattern":{"Regex":" ?[^\\s\\p{N}]+|\\s+(?!\\S)|\\s+"},"behavior":"Isolated","invert":false},
{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]},
"post_processor":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":false,"use_regex":true},
"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},
"model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,
"end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,"vocab":{)" +
         vocab + "},\"merges\":[" + merges + "]}}";
}

// `text` with the first `from` replaced; `from` must be there.
inline std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  return at == std::string::npos ? "no such text in the file: " + std::string(from)
                                 : text.replace(at, from.size(), to);
}

}  // namespace deepinfer
