// apps/answer_view.h: a chat's answer for a person to read: thinking apart from the answer, calls
// in brackets.
#pragma once

#include <functional>
#include <string_view>

#include "base/status.h"
#include "tokens/answer_parser.h"

namespace deepinfer {

// Fed with the deltas of one answer in order; text goes out at once.
class AnswerView {
 public:
  struct Style {
    bool dim_thinking = false;  // with terminal codes
    bool show_thinking = true;  // else it is left out
  };
  using Write = std::function<Status(std::string_view)>;

  AnswerView(Style style, Write write) : style_(style), write_(std::move(write)) {}

  Status Show(const AnswerDelta& delta);
  // Ends the dimming if the answer ended inside thinking. Writes no line end.
  Status End();

 private:
  Style style_;
  Write write_;
  bool in_thinking_ = false;
};

}  // namespace deepinfer
