#include "tokens/engram_classes.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "base/check.h"
#include "base/log.h"
#include "base/sha256.h"
#include "tokens/engram_key.h"
#include "tokens/utf8.h"

namespace deepinfer {
namespace {

// The tokenizer.json of DeepSeek-V4.1-Flash and the digest of the table that belongs to it (int32,
// little-endian). Source: model.md 3.9, corpora.md 6.
constexpr std::string_view kRealTokenizerSha256 =
    "c90dfa01249db1be4245780a052ede752e1361c612ac6d08e2bdada7d599476b";
constexpr std::string_view kRealTableSha256 =
    "c60a86322ec17b4142bfef3c57a8d81fb428550cdf487f88a4320cb59fe46481";

// engram_classes.cache.bin: this line, the tokenizer's digest and the table's digest in
// hexadecimal, then the table.
constexpr std::string_view kCacheMagic = "deepinfer engram classes 1\n";
constexpr size_t kHexBytes = 64;
constexpr size_t kCacheHeaderBytes = kCacheMagic.size() + 2 * kHexBytes;

std::string_view BytesOf(const std::vector<int32_t>& table) {
  return {reinterpret_cast<const char*>(table.data()), table.size() * sizeof(int32_t)};
}

// Requires: bytes.size() is a multiple of 4. All machines we build for are little-endian.
std::vector<int32_t> TableOf(std::string_view bytes) {
  std::vector<int32_t> table(bytes.size() / sizeof(int32_t));
  if (!table.empty()) std::memcpy(table.data(), bytes.data(), bytes.size());
  return table;
}

std::string TableSha256(const std::vector<int32_t>& table) {
  return ToHex(Sha256Of(BytesOf(table)));
}

StatusOr<std::vector<int32_t>> ReadTable(Disk& disk, const std::string& path,
                                         const EngramClassSpec& spec) {
  DI_ASSIGN_OR_RETURN(const std::string bytes, disk.ReadText(path));
  const size_t expected = static_cast<size_t>(spec.vocab_size) * sizeof(int32_t);
  if (bytes.size() != expected) {
    return FailedPrecondition(path, ": ", bytes.size(), " bytes, expected ", expected,
                              " (an int32 for each of ", spec.vocab_size, " token ids)");
  }
  return TableOf(bytes);
}

// The cached table, if there is one that was made from this tokenizer and is whole.
std::optional<std::vector<int32_t>> ReadCache(Disk& disk, const std::string& path,
                                              const Tokenizer& tokenizer,
                                              const EngramClassSpec& spec) {
  if (!disk.IsFile(path)) return std::nullopt;
  const StatusOr<std::string> file = disk.ReadText(path);
  if (!file.ok()) return std::nullopt;
  const std::string_view bytes = *file;
  const size_t table_bytes = static_cast<size_t>(spec.vocab_size) * sizeof(int32_t);
  if (bytes.size() != kCacheHeaderBytes + table_bytes) return std::nullopt;
  const std::string_view table = bytes.substr(kCacheHeaderBytes);
  const std::string header = StrCat(kCacheMagic, tokenizer.sha256(), ToHex(Sha256Of(table)));
  if (bytes.substr(0, kCacheHeaderBytes) != header) return std::nullopt;
  return TableOf(table);
}

void WriteCache(Disk& disk, const std::string& path, const Tokenizer& tokenizer,
                const std::vector<int32_t>& table) {
  const Status written = disk.WriteText(
      path, StrCat(kCacheMagic, tokenizer.sha256(), TableSha256(table), BytesOf(table)));
  if (!written.ok()) {
    LogInfo("engram classes are not cached and will be computed at every start: ",
            MessageOf(written));
  }
}

// What two tokens must share to be one class.
std::string KeyOf(const Tokenizer& tokenizer, int32_t id) {
  std::string repaired;
  const std::string_view text = RepairUtf8(tokenizer.BytesOf(id), repaired);
  if (text.find(kReplacementCharacter) != std::string_view::npos) {
    return std::string(tokenizer.TokenText(id));
  }
  std::string key = EngramKey(text);
  return key.empty() ? std::string(text) : key;
}

}  // namespace

std::vector<int32_t> ComputeEngramClasses(const Tokenizer& tokenizer, int32_t vocab_size) {
  CHECK_GE(vocab_size, tokenizer.vocab_size());
  std::unordered_map<std::string, int32_t> class_of_key;
  std::vector<int32_t> table(static_cast<size_t>(vocab_size));
  for (int32_t id = 0; id < vocab_size; ++id) {
    const auto next = static_cast<int32_t>(class_of_key.size());
    table[static_cast<size_t>(id)] =
        class_of_key.try_emplace(KeyOf(tokenizer, id), next).first->second;
  }
  return table;
}

bool IsRealTokenizer(std::string_view tokenizer_sha256) {
  return tokenizer_sha256 == kRealTokenizerSha256;
}

Status CheckEngramClasses(const std::vector<int32_t>& table, const EngramClassSpec& spec,
                          std::string_view tokenizer_sha256, std::string_view where) {
  CHECK_EQ(static_cast<int64_t>(table.size()), spec.vocab_size);
  const std::string who = StrCat("engram token classes of ", where, ": ");
  // One class an id is the most there can be; more than config.json says are counted, to name the
  // number.
  const size_t limit = std::max(table.size(), static_cast<size_t>(spec.num_classes));
  std::vector<bool> used(limit);
  for (size_t id = 0; id < table.size(); ++id) {
    if (table[id] < 0 || static_cast<size_t>(table[id]) >= limit) {
      return FailedPrecondition(who, "class ", table[id], " of token ", id, ", expected 0 to ",
                                spec.num_classes - 1);
    }
    used[static_cast<size_t>(table[id])] = true;
  }
  const int64_t num_used = std::count(used.begin(), used.end(), true);
  const int32_t highest = *std::max_element(table.begin(), table.end());
  if (num_used != spec.num_classes || highest + 1 != spec.num_classes) {
    return FailedPrecondition(who, num_used, " classes, the highest is ", highest,
                              ", but engram_compressed_vocab_size in config.json says ",
                              spec.num_classes, ": tokenizer and weights do not belong together");
  }
  const int32_t pad_class = table[static_cast<size_t>(spec.pad_id)];
  if (pad_class != spec.pad_id) {
    return FailedPrecondition(who, "the pad token ", spec.pad_id, " has class ", pad_class,
                              ", expected ", spec.pad_id);
  }
  if (!IsRealTokenizer(tokenizer_sha256)) return OkStatus();
  if (const std::string found = TableSha256(table); found != kRealTableSha256) {
    return FailedPrecondition(who, "SHA-256 of the table is ", found, ", expected ",
                              kRealTableSha256, " with the tokenizer of DeepSeek-V4.1-Flash");
  }
  return OkStatus();
}

StatusOr<std::vector<int32_t>> LoadEngramClasses(Disk& disk, const std::string& dir,
                                                 const Tokenizer* tokenizer,
                                                 const EngramClassSpec& spec) {
  CHECK(spec.num_classes > 0 && spec.pad_id >= 0 && spec.pad_id < spec.vocab_size);
  const std::string_view digest = tokenizer == nullptr ? std::string_view() : tokenizer->sha256();
  if (const std::string path = dir + "/engram_classes.bin"; disk.IsFile(path)) {
    DI_ASSIGN_OR_RETURN(std::vector<int32_t> table, ReadTable(disk, path, spec));
    DI_RETURN_IF_ERROR(CheckEngramClasses(table, spec, digest, path));
    return table;
  }
  if (tokenizer == nullptr) {
    return NotFound(dir,
                    ": neither tokenizer.json nor engram_classes.bin is there, one of them is "
                    "needed for the engram token classes");
  }
  if (tokenizer->vocab_size() > spec.vocab_size) {
    return InvalidArgument(dir, "/tokenizer.json: ids up to ", tokenizer->vocab_size() - 1,
                           ", but vocab_size in config.json is ", spec.vocab_size);
  }
  const std::string cache_path = dir + "/engram_classes.cache.bin";
  if (auto cached = ReadCache(disk, cache_path, *tokenizer, spec)) {
    DI_RETURN_IF_ERROR(CheckEngramClasses(*cached, spec, digest, cache_path));
    return *std::move(cached);
  }
  std::vector<int32_t> table = ComputeEngramClasses(*tokenizer, spec.vocab_size);
  DI_RETURN_IF_ERROR(CheckEngramClasses(table, spec, digest, dir + "/tokenizer.json"));
  WriteCache(disk, cache_path, *tokenizer, table);
  return table;
}

}  // namespace deepinfer
