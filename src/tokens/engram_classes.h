// tokens/engram_classes.h: the map token id -> engram class, from a table, a cache or the
// tokenizer.
//
// Tokens that look alike to a reader (case, accents, white space) share a class; engram rows are
// looked up by class. The multipliers of the row hash follow from the number of classes, so a wrong
// count would change every row: it is refused. Source: model.md 3.9.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "base/status.h"
#include "tokens/tokenizer.h"

namespace deepinfer {

// What config.json says about the table.
struct EngramClassSpec {
  int32_t vocab_size = 0;   // entries
  int32_t num_classes = 0;  // engram_compressed_vocab_size
  int32_t pad_id = 0;       // engram_pad_token_id; its class must be its own id
};

// The table of the checkpoint in `dir`: of engram_classes.bin (int32 an id, little-endian) if the
// checkpoint brings it, else of engram_classes.cache.bin if it was made from this tokenizer, else
// computed and cached there; a directory that cannot be written to costs one log line. `tokenizer`
// may be null: then only engram_classes.bin will do. Errors: kFailedPrecondition naming expected
// and found when length, number of classes, class of the pad token or, beside the tokenizer of
// DeepSeek-V4.1-Flash, the table's digest are not as they must be; kNotFound without table and
// tokenizer; kInvalidArgument if the tokenizer has more ids than the model.
StatusOr<std::vector<int32_t>> LoadEngramClasses(Disk& disk, const std::string& dir,
                                                 const Tokenizer* tokenizer,
                                                 const EngramClassSpec& spec);

// Whether a tokenizer.json with this digest is the one of DeepSeek-V4.1-Flash.
bool IsRealTokenizer(std::string_view tokenizer_sha256);

// The steps, for tests and for tools that write checkpoints.
// Ids without a token share a class. Requires: vocab_size >= tokenizer.vocab_size().
std::vector<int32_t> ComputeEngramClasses(const Tokenizer& tokenizer, int32_t vocab_size);
// `where` names the table in messages; tokenizer_sha256 is empty without a tokenizer.
Status CheckEngramClasses(const std::vector<int32_t>& table, const EngramClassSpec& spec,
                          std::string_view tokenizer_sha256, std::string_view where);

}  // namespace deepinfer
