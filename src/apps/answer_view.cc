#include "apps/answer_view.h"

#include <utility>

#include "base/strings.h"

namespace deepinfer {
namespace {

constexpr std::string_view kDim = "\x1b[2m", kPlain = "\x1b[0m";

}  // namespace

Status AnswerView::Show(const AnswerDelta& delta) {
  const bool thinking = delta.kind == AnswerDelta::Kind::kReasoning;
  if (thinking && !style_.show_thinking) return OkStatus();
  std::string out;
  if (thinking != in_thinking_) {
    if (style_.dim_thinking) out += thinking ? kDim : kPlain;
    if (!thinking) out += "\n\n";  // between thinking and answer
    in_thinking_ = thinking;
  }
  out += delta.kind == AnswerDelta::Kind::kCall
             ? StrCat("[call ", delta.call.name, " ", delta.call.arguments, "]")
             : delta.text;
  return write_(out);
}

Status AnswerView::End() {
  const bool reset = std::exchange(in_thinking_, false) && style_.dim_thinking;
  return reset ? write_(kPlain) : OkStatus();
}

}  // namespace deepinfer
