// The input is JSON, for both of our readers.
#include <nlohmann/json.hpp>

#include "fuzz.h"
#include "model/json_object.h"
#include "tokens/json.h"

namespace deepinfer::fuzz {
namespace {

// Printing and reading again changes nothing.
void CheckStable(const JsonValue& value) {
  const std::string printed = DumpJson(value);
  CHECK(IsUtf8(printed));
  const auto again = ParseJson(printed);
  CHECK(again.ok());
  CHECK_EQ(DumpJson(*again), printed);
}

// Whatever an object holds can be shown in a message.
void CheckShown(const nlohmann::json& root) {
  if (!root.is_object()) return;
  Status status;
  JsonObject object(root, "file", &status);
  for (const auto& item : root.items()) CheckLine(object.Show(item.key()));
  for (const auto& item : root.items()) object.Expect(item.key(), "no such value");
  object.Finish(/*strict=*/true);
  if (!status.ok()) CheckRefusal(status);
}

}  // namespace
}  // namespace deepinfer::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace deepinfer;
  const std::string_view text = fuzz::AsText(data, size);
  const auto value = ParseJson(text);
  nlohmann::json model_value;
  const Status model_status = ParseJsonText(text, "file", &model_value);
  if (value.ok()) {
    CHECK(model_status.ok());
    fuzz::CheckStable(*value);
  } else {
    fuzz::CheckRefusal(value.status());
  }
  if (model_status.ok()) {
    fuzz::CheckShown(model_value);
  } else {
    fuzz::CheckRefusal(model_status);
  }
  return 0;
}
