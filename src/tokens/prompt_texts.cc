#include "tokens/prompt_texts.h"

#include <algorithm>
#include <span>

#include "base/sha256.h"
#include "tokens/control_tokens.h"
#include "tokens/json_fields.h"
#include "tokens/python_constants.h"
#include "tokens/utf8.h"

namespace deepinfer {
namespace {

struct TemplateField {
  std::string_view name;
  std::string_view value;
  bool is_control;
};

constexpr TemplateField kToolsFields[] = {
    {"dsml_token", kDsmlToken, true},
    {"tc_block_name", kCallsTag, false},
    {"tool_call_tag_name", kInvokeTag, false},
    {"tool_parameter_tag_name", kParameterTag, false},
    {"thinking_start_token", kThinkStartToken, true},
    {"thinking_end_token", kThinkEndToken, true},
};

// Digests of DeepSeek's own texts, filled in with the fields above. Source: model.md 5.3.
struct OfficialText {
  std::string_view what;
  size_t size_bytes;
  std::string_view sha256;
};
constexpr OfficialText kToolsBefore = {
    "the tools text before the schemas", 884,
    "2ae2ff83edf990187ed419c4e2901bb9ea6ce2129eb503ac543b258e7de8231d"};
constexpr OfficialText kToolsAfter = {
    "the tools text after the schemas", 99,
    "690702850fe256512cb1ee67c4e436ecb3e735c71ebee77ca45ff357a75fb5a7"};
constexpr OfficialText kResponseBefore = {
    "the response format text", 80,
    "5200f58413f49f3957c43beddbc97bead023232cb5934fad0c1997c30c139112"};

// One Python format string, cut at its hole.
class TemplateParser {
 public:
  TemplateParser(std::string_view text, std::string_view hole,
                 std::span<const TemplateField> fields)
      : rest_(text), hole_(hole), fields_(fields) {}

  StatusOr<PromptTemplate> Parse() {
    std::string repaired;
    if (RepairUtf8(rest_, repaired).data() != rest_.data()) {
      return InvalidArgument("expected UTF-8, found other bytes");
    }
    while (!rest_.empty()) {
      const size_t brace = std::min(rest_.find_first_of("{}"), rest_.size());
      out_.Text(rest_.substr(0, brace));
      rest_.remove_prefix(brace);
      if (!rest_.empty()) DI_RETURN_IF_ERROR(ParseBrace());
    }
    if (!hole_seen_) return InvalidArgument("expected the field {", hole_, "}, found none");
    result_.after = out_.TakeSegments();
    return std::move(result_);
  }

 private:
  Status ParseBrace() {
    if (rest_.starts_with("{{") || rest_.starts_with("}}")) {
      out_.Text(rest_.substr(0, 1));
      rest_.remove_prefix(2);
      return OkStatus();
    }
    const size_t end = rest_.find('}');
    if (rest_[0] == '}' || end == rest_.npos) {
      return InvalidArgument("expected {field}, or a brace written twice, found a single brace");
    }
    const std::string_view name = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return Fill(name);
  }

  Status Fill(std::string_view name) {
    if (name == hole_) {
      if (hole_seen_)
        return InvalidArgument("expected the field {", hole_, "} once, found it twice");
      hole_seen_ = true;
      result_.before = out_.TakeSegments();
      out_ = PromptWriter();
      return OkStatus();
    }
    for (const TemplateField& field : fields_) {
      if (field.name != name) continue;
      field.is_control ? out_.Control(field.value) : out_.Text(field.value);
      return OkStatus();
    }
    return InvalidArgument("unknown field {", name, "}");
  }

  std::string_view rest_;
  const std::string_view hole_;
  const std::span<const TemplateField> fields_;
  PromptWriter out_;
  PromptTemplate result_;
  bool hole_seen_ = false;
};

StatusOr<PromptTexts> ParseTemplates(std::string_view tools, std::string_view response_format,
                                     std::string_view where) {
  PromptTexts texts;
  StatusOr<PromptTemplate> parsed = TemplateParser(tools, "tool_schemas", kToolsFields).Parse();
  if (!parsed.ok()) return Annotate(parsed.status(), where, ": tools template");
  texts.tools = *std::move(parsed);
  parsed = TemplateParser(response_format, "schema", {}).Parse();
  if (!parsed.ok()) return Annotate(parsed.status(), where, ": response format template");
  texts.response_format = *std::move(parsed);
  return texts;
}

std::string Mismatch(const std::vector<PromptSegment>& segments, const OfficialText& official) {
  const std::string text = TextOf(segments);
  const std::string digest = ToHex(Sha256Of(text));
  if (digest == official.sha256) return "";
  return StrCat(official.what, " is not DeepSeek's: expected ", official.size_bytes,
                " bytes with SHA-256 ", official.sha256, ", found ", text.size(), " with ", digest);
}

StatusOr<PromptTexts> ReadPromptTexts(Disk& disk, const std::string& checkpoint_directory) {
  const std::string directory = checkpoint_directory + "/encoding";
  const std::string python = directory + "/encoding.py";
  if (disk.IsFile(python)) {
    DI_ASSIGN_OR_RETURN(const std::string source, disk.ReadText(python));
    return ParseEncodingPy(source, python);
  }
  const std::string json = directory + "/prompt_texts.json";
  if (disk.IsFile(json)) {
    DI_ASSIGN_OR_RETURN(const std::string text, disk.ReadText(json));
    return ParsePromptTextsJson(text, json);
  }
  return NotFound("chat prompts need the checkpoint's own texts: expected ", python, " or ", json,
                  ", found neither; copy the folder encoding/ of the model's release there (plain "
                  "text prompts work without)");
}

}  // namespace

StatusOr<PromptTexts> ParseEncodingPy(std::string_view python, std::string_view where) {
  std::string values[2];
  for (const int i : {0, 1}) {
    const std::string_view name = i == 0 ? "TOOLS_TEMPLATE" : "response_format_template";
    StatusOr<std::string> value = PythonStringConstant(python, name);
    if (!value.ok()) return Annotate(value.status(), where);
    values[i] = *std::move(value);
  }
  return ParseTemplates(values[0], values[1], where);
}

StatusOr<PromptTexts> ParsePromptTextsJson(std::string_view json, std::string_view where) {
  const StatusOr<JsonValue> value = ParseJson(json);
  if (!value.ok()) return Annotate(value.status(), where);
  const JsonField root(&*value, std::string(where));
  DI_RETURN_IF_ERROR(root.ExpectObject());
  const JsonField format = root.Member("format");
  if (format.absent() || format.value()->text != "1") return format.Unexpected("1");
  DI_ASSIGN_OR_RETURN(const std::string tools, root.RequiredString("tools_template"));
  DI_ASSIGN_OR_RETURN(const std::string response, root.RequiredString("response_format_template"));
  return ParseTemplates(tools, response, where);
}

std::string OfficialDigestMismatch(const PromptTexts& texts) {
  for (const std::string& mismatch :
       {Mismatch(texts.tools.before, kToolsBefore), Mismatch(texts.tools.after, kToolsAfter),
        Mismatch(texts.response_format.before, kResponseBefore)}) {
    if (!mismatch.empty()) return mismatch;
  }
  return "";
}

StatusOr<PromptTexts> LoadPromptTexts(Disk& disk, const std::string& checkpoint_directory,
                                      const PromptTextsOptions& options) {
  DI_ASSIGN_OR_RETURN(PromptTexts texts, ReadPromptTexts(disk, checkpoint_directory));
  if (!options.official || options.unchecked) return texts;
  if (const std::string mismatch = OfficialDigestMismatch(texts); !mismatch.empty()) {
    texts.refusal = StrCat(checkpoint_directory, "/encoding: ", mismatch,
                           "; --encoding-unchecked takes the texts as they are");
  }
  return texts;
}

}  // namespace deepinfer
