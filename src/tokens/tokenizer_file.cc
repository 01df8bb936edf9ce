#include "tokens/tokenizer_file.h"

#include <nlohmann/json.hpp>

#include "tokens/byte_alphabet.h"
#include "tokens/json.h"
#include "tokens/utf8.h"

namespace deepinfer {
namespace {

using Json = nlohmann::json;

// What a key may hold when it changes nothing: missing or null, false, 0, an empty text or list.
bool IsNeutral(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || it->is_null()) return true;
  if (it->is_boolean()) return !it->get<bool>();
  if (it->is_number()) return it->get<double>() == 0;
  if (it->is_string()) return it->get_ref<const std::string&>().empty();
  return it->empty();
}

std::string Shown(const Json& value) {
  constexpr size_t kMaxShown = 60;
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kMaxShown) text = text.substr(0, kMaxShown) + "...";
  return text;
}

Status NotSupported(std::string_view what, const Json& found, std::string_view supported) {
  return Unimplemented(what, " ", Shown(found), " is not supported, only ", supported);
}

StatusOr<std::string> TypeOf(const Json& part, std::string_view what) {
  if (part.is_object()) {
    const auto it = part.find("type");
    if (it != part.end() && it->is_string()) return it->get<std::string>();
  }
  return InvalidArgument(what, " is ", Shown(part), ", an object with a \"type\" was expected");
}

// The parts of a Sequence under `list_key`, or the one part itself; nothing for null.
StatusOr<std::vector<const Json*>> Steps(const Json& root, const char* key, const char* list_key) {
  std::vector<const Json*> steps;
  const auto it = root.find(key);
  if (it == root.end() || it->is_null()) return steps;
  DI_ASSIGN_OR_RETURN(const std::string type, TypeOf(*it, key));
  if (type != "Sequence") {
    steps.push_back(&*it);
    return steps;
  }
  const auto list = it->find(list_key);
  if (list == it->end() || !list->is_array()) {
    return InvalidArgument(key, " is a Sequence without a list \"", list_key, "\"");
  }
  for (const Json& step : *list) steps.push_back(&step);
  return steps;
}

// GPT-2's split, which ByteLevel means with use_regex.
constexpr const char* kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// A flag of an object. Errors: kInvalidArgument if it is there and no boolean.
StatusOr<bool> Flag(const Json& object, const char* key, bool if_missing) {
  const auto it = object.find(key);
  if (it == object.end()) return if_missing;
  if (!it->is_boolean()) {
    return InvalidArgument("\"", key, "\" is ", Shown(*it), ", true or false was expected");
  }
  return it->get<bool>();
}

StatusOr<std::string> SplitPatternOf(const Json& split) {
  const auto behavior = split.find("behavior");
  if (behavior == split.end() || *behavior != "Isolated") {
    return NotSupported("pre_tokenizer", split, "Split with behavior Isolated");
  }
  // "invert" swaps matches and the rest, which makes no difference to Isolated pieces.
  const auto pattern = split.find("pattern");
  if (pattern == split.end() || !pattern->is_object() || !pattern->contains("Regex") ||
      !(*pattern)["Regex"].is_string()) {
    return NotSupported("pre_tokenizer", split, "Split with a pattern {\"Regex\": ...}");
  }
  return (*pattern)["Regex"].get<std::string>();
}

Status ReadPreTokenizer(const Json& root, TokenizerFile& file) {
  DI_ASSIGN_OR_RETURN(const std::vector<const Json*> steps,
                      Steps(root, "pre_tokenizer", "pretokenizers"));
  bool byte_level = false;
  for (const Json* step : steps) {
    DI_ASSIGN_OR_RETURN(const std::string type, TypeOf(*step, "pre_tokenizer"));
    if (byte_level) return NotSupported("pre_tokenizer", *step, "ByteLevel as the last step");
    if (type == "Split") {
      DI_ASSIGN_OR_RETURN(std::string pattern, SplitPatternOf(*step));
      file.split_patterns.push_back(std::move(pattern));
    } else if (type == "ByteLevel") {
      byte_level = true;
      DI_ASSIGN_OR_RETURN(const bool prefix_space, Flag(*step, "add_prefix_space", true));
      DI_ASSIGN_OR_RETURN(const bool use_regex, Flag(*step, "use_regex", true));
      if (prefix_space) {
        return NotSupported("pre_tokenizer", *step, "ByteLevel with add_prefix_space false");
      }
      if (use_regex) file.split_patterns.emplace_back(kByteLevelPattern);
    } else {
      return NotSupported("pre_tokenizer", *step, "Split and ByteLevel");
    }
  }
  if (!byte_level) {
    return Unimplemented(
        "pre_tokenizer has no ByteLevel step: only byte-level tokenizers are supported");
  }
  return OkStatus();
}

// Parts that must be absent, or ByteLevel, which changes no ids after the pre-tokenizer.
Status CheckOtherParts(const Json& root) {
  for (const char* key : {"truncation", "padding"}) {
    if (!IsNeutral(root, key)) return NotSupported(key, root[key], "null");
  }
  DI_ASSIGN_OR_RETURN(const auto normalizers, Steps(root, "normalizer", "normalizers"));
  for (const Json* step : normalizers) return NotSupported("normalizer", *step, "none");
  DI_ASSIGN_OR_RETURN(const auto processors, Steps(root, "post_processor", "processors"));
  for (const Json* step : processors) {
    DI_ASSIGN_OR_RETURN(const std::string type, TypeOf(*step, "post_processor"));
    if (type != "ByteLevel") return NotSupported("post_processor", *step, "ByteLevel or none");
  }
  DI_ASSIGN_OR_RETURN(const auto decoders, Steps(root, "decoder", "decoders"));
  for (const Json* step : decoders) {
    DI_ASSIGN_OR_RETURN(const std::string type, TypeOf(*step, "decoder"));
    if (type != "ByteLevel") return NotSupported("decoder", *step, "ByteLevel");
  }
  if (decoders.size() != 1) {
    return Unimplemented("decoder has ", decoders.size(),
                         " steps, one ByteLevel step is supported");
  }
  return OkStatus();
}

StatusOr<int32_t> TokenId(const Json& value, std::string_view token) {
  if (!value.is_number_integer() || value < 0 || value > kMaxTokenId) {
    return InvalidArgument("id of token \"", token, "\" is ", Shown(value), ", a number from 0 to ",
                           kMaxTokenId, " was expected");
  }
  return value.get<int32_t>();
}

Status ReadVocab(const Json& model, TokenizerFile& file) {
  const auto vocab = model.find("vocab");
  if (vocab == model.end() || !vocab->is_object()) {
    return InvalidArgument("model has no object \"vocab\"");
  }
  file.vocab.reserve(vocab->size());
  for (const auto& [spelling, id] : vocab->items()) {
    if (spelling.empty()) return InvalidArgument("vocab has an empty token");
    DI_ASSIGN_OR_RETURN(const int32_t number, TokenId(id, spelling));
    file.vocab.push_back({spelling, number});
  }
  return OkStatus();
}

// A merge is "left right" in older files and ["left", "right"] in newer ones.
StatusOr<MergeRule> ReadMerge(const Json& merge, size_t rank) {
  if (merge.is_string()) {
    const auto& text = merge.get_ref<const std::string&>();
    const size_t blank = text.find(' ');
    const bool one_blank =
        blank != std::string::npos && text.find(' ', blank + 1) == std::string::npos;
    if (one_blank && blank > 0 && blank + 1 < text.size()) {
      return MergeRule{text.substr(0, blank), text.substr(blank + 1)};
    }
  } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
             merge[1].is_string()) {
    return MergeRule{merge[0].get<std::string>(), merge[1].get<std::string>()};
  }
  return InvalidArgument("merge ", rank, " is ", Shown(merge),
                         ", \"left right\" or [\"left\", \"right\"] was expected");
}

Status ReadMerges(const Json& model, TokenizerFile& file) {
  const auto merges = model.find("merges");
  if (merges == model.end() || !merges->is_array()) {
    return InvalidArgument("model has no list \"merges\"");
  }
  file.merges.reserve(merges->size());
  for (size_t rank = 0; rank < merges->size(); ++rank) {
    DI_ASSIGN_OR_RETURN(MergeRule rule, ReadMerge((*merges)[rank], rank));
    file.merges.push_back(std::move(rule));
  }
  return OkStatus();
}

Status ReadModel(const Json& root, TokenizerFile& file) {
  const auto model = root.find("model");
  if (model == root.end()) return InvalidArgument("no \"model\": not a tokenizer.json");
  DI_ASSIGN_OR_RETURN(const std::string type, TypeOf(*model, "model"));
  if (type != "BPE") return NotSupported("model type", (*model)["type"], "BPE");
  for (const char* key :
       {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"}) {
    if (!IsNeutral(*model, key)) return NotSupported(StrCat("model.", key), (*model)[key], "none");
  }
  // unk_token and fuse_unk have no effect: a byte-level vocabulary knows every byte.
  DI_ASSIGN_OR_RETURN(file.ignore_merges, Flag(*model, "ignore_merges", false));
  DI_RETURN_IF_ERROR(ReadVocab(*model, file));
  return ReadMerges(*model, file);
}

StatusOr<AddedToken> ReadAddedToken(const Json& entry) {
  if (!entry.is_object() || !entry.contains("content") || !entry["content"].is_string() ||
      !entry.contains("id")) {
    return InvalidArgument("added token ", Shown(entry), " needs \"content\" and \"id\"");
  }
  AddedToken token{entry["content"].get<std::string>()};
  if (token.content.empty()) return InvalidArgument("added token ", Shown(entry), " is empty");
  DI_ASSIGN_OR_RETURN(token.id, TokenId(entry["id"], token.content));
  DI_ASSIGN_OR_RETURN(token.special, Flag(entry, "special", false));
  DI_ASSIGN_OR_RETURN(token.normalized, Flag(entry, "normalized", !token.special));
  DI_ASSIGN_OR_RETURN(token.single_word, Flag(entry, "single_word", false));
  DI_ASSIGN_OR_RETURN(token.lstrip, Flag(entry, "lstrip", false));
  DI_ASSIGN_OR_RETURN(token.rstrip, Flag(entry, "rstrip", false));
  return token;
}

Status ReadAddedTokens(const Json& root, TokenizerFile& file) {
  const auto tokens = root.find("added_tokens");
  if (tokens == root.end() || tokens->is_null()) return OkStatus();
  if (!tokens->is_array()) return InvalidArgument("added_tokens is no list");
  for (const Json& entry : *tokens) {
    DI_ASSIGN_OR_RETURN(AddedToken token, ReadAddedToken(entry));
    file.added_tokens.push_back(std::move(token));
  }
  return OkStatus();
}

StatusOr<TokenizerFile> Read(const Json& root) {
  if (!root.is_object()) return InvalidArgument("a JSON object was expected");
  TokenizerFile file;
  DI_RETURN_IF_ERROR(ReadModel(root, file));
  DI_RETURN_IF_ERROR(ReadAddedTokens(root, file));
  DI_RETURN_IF_ERROR(ReadPreTokenizer(root, file));
  DI_RETURN_IF_ERROR(CheckOtherParts(root));
  return file;
}

}  // namespace

StatusOr<TokenizerFile> ParseTokenizerFile(std::string_view json, std::string_view where) {
  bool too_deep = false;
  const auto in_bounds = [&](int depth, Json::parse_event_t, const Json&) {
    too_deep |= depth > kMaxJsonDepth;
    return !too_deep;
  };
  try {
    const Json root = Json::parse(json, in_bounds);
    if (too_deep) {
      return InvalidArgument(where, ": nested deeper than ", kMaxJsonDepth, " levels");
    }
    StatusOr<TokenizerFile> file = Read(root);
    if (!file.ok()) return Annotate(file.status(), where);
    return file;
  } catch (const Json::exception& e) {
    std::string repaired;  // the library quotes the file up to the byte that broke it
    return InvalidArgument(where, ": broken JSON: ", RepairUtf8(e.what(), repaired));
  }
}

}  // namespace deepinfer
