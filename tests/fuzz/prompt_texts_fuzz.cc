// The input is encoding/encoding.py and, at the same time, encoding/prompt_texts.json.
#include "fuzz.h"
#include "tokens/control_tokens.h"
#include "tokens/json.h"
#include "tokens/prompt_texts.h"
#include "tokens/python_constants.h"

namespace deepinfer::fuzz {
namespace {

void CheckSegments(const std::vector<PromptSegment>& segments) {
  for (size_t i = 0; i < segments.size(); ++i) {
    const PromptSegment& segment = segments[i];
    CHECK(segment.kind != PromptSegment::Kind::kImage);
    CHECK(!segment.text.empty());
    CHECK(IsUtf8(segment.text));
    if (segment.kind == PromptSegment::Kind::kControl) {
      CHECK(segment.text == kDsmlToken || segment.text == kThinkStartToken ||
            segment.text == kThinkEndToken);
    } else if (i > 0) {
      CHECK(segments[i - 1].kind != PromptSegment::Kind::kText);  // neighbouring texts are one
    }
  }
}

void CheckTexts(const PromptTexts& texts) {
  for (const PromptTemplate* text : {&texts.tools, &texts.response_format}) {
    CheckSegments(text->before);
    CheckSegments(text->after);
  }
  CheckLine(OfficialDigestMismatch(texts));  // no input is DeepSeek's
}

// The same two constants in the other file give the same texts.
void CheckAsJson(std::string_view python, const PromptTexts& texts) {
  const auto tools = PythonStringConstant(python, "TOOLS_TEMPLATE");
  const auto response = PythonStringConstant(python, "response_format_template");
  CHECK(tools.ok() && response.ok());
  std::string json = R"({"format": 1, "tools_template": )";
  AppendJsonString(*tools, json);
  json += R"(, "response_format_template": )";
  AppendJsonString(*response, json);
  const auto again = ParsePromptTextsJson(json + "}", "prompt_texts.json");
  CHECK(again.ok());
  CHECK(again->tools.before == texts.tools.before && again->tools.after == texts.tools.after);
  CHECK(again->response_format.before == texts.response_format.before &&
        again->response_format.after == texts.response_format.after);
}

}  // namespace
}  // namespace deepinfer::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace deepinfer;
  const std::string_view text = fuzz::AsText(data, size);
  const auto from_python = ParseEncodingPy(text, "encoding.py");
  if (from_python.ok()) {
    fuzz::CheckTexts(*from_python);
    fuzz::CheckAsJson(text, *from_python);
  } else {
    fuzz::CheckRefusal(from_python.status());
  }
  const auto from_json = ParsePromptTextsJson(text, "prompt_texts.json");
  if (from_json.ok()) {
    fuzz::CheckTexts(*from_json);
  } else {
    fuzz::CheckRefusal(from_json.status());
  }
  return 0;
}
