#include "tokens/answer_machine.h"

#include "base/strings.h"
#include "tokens/answer_symbols.h"
#include "tokens/json.h"

namespace deepinfer {
namespace {

// Longer names are no tag's; this bounds what is kept of them.
constexpr size_t kMaxTagNameBytes = 32;

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool IsNameLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool IsBlockName(std::string_view name) {
  return name == "calls" || name == "tool_calls" || name == "function_calls";
}

std::string_view TrimLeft(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  return text;
}

std::string_view TrimRight(std::string_view text) {
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

// Whether the text may be the beginning of a tag and of what a tag takes with it: at most two
// newlines where these belong to the tag, then nothing, "<" or "</".
bool MayBelongToTag(std::string_view text, bool with_newlines) {
  for (int i = 0; i < 2 && with_newlines && text.starts_with('\n'); ++i) text.remove_prefix(1);
  return text.empty() || text == "<" || text == "</";
}

}  // namespace

void AnswerMachine::Read(std::string_view symbols) {
  for (const char c : symbols) Step(c);
}

void AnswerMachine::Finish() {
  if (where_ == Where::kEnded) return;
  // Right behind a tag, "<" can only have been the beginning of another.
  if (tag_part_ == TagPart::kNone && !(where_ == Where::kContent && after_tag_)) {
    for (const char c : held_) Emit(c);
  }
  if (InOpenCall()) Malformed("the answer ends inside a call");
  where_ = Where::kEnded;
}

void AnswerMachine::Step(char c) {
  if (where_ == Where::kEnded) return;
  if (c == kEosSymbol) {
    Finish();
    saw_eos_ = true;
    return;
  }
  switch (tag_part_) {
    case TagPart::kNone:
      return StepOutsideTag(c);
    case TagPart::kName:
      return StepInTagName(c);
    case TagPart::kSkipped:
      return StepInSkipped(c);
    case TagPart::kCallHead:
    case TagPart::kParameterHead:
      return StepInHead(c);
  }
}

void AnswerMachine::StepOutsideTag(char c) {
  if (!IsControlSymbol(c)) return Hold(c);
  if (c == kDsmlSymbol && held_.ends_with('<')) {
    closing_ = false;
    return BeginTag();
  }
  if (c == kDsmlSymbol && held_.ends_with("</")) {
    closing_ = true;
    return BeginTag();
  }
  if (InOpenCall()) return Malformed("a control token inside a call");
  if (c == kThinkEndSymbol && where_ == Where::kThinking) {
    for (const char held : held_) Emit(held);
    held_.clear();
    where_ = Where::kContent;
  }
}

void AnswerMachine::BeginTag() {
  held_.clear();
  tag_name_.clear();
  tag_part_ = TagPart::kName;
}

void AnswerMachine::StepInTagName(char c) {
  if (IsNameLetter(c)) {
    if (tag_name_.size() < kMaxTagNameBytes) tag_name_ += c;
    return;
  }
  if (c == ' ' && tag_name_.empty()) return;
  OnTagName();
  Step(c);
}

void AnswerMachine::OnTagName() {
  tag_part_ = TagPart::kSkipped;
  head_.clear();
  if (closing_) return;
  if (tag_name_ == "invoke") {
    BeginCall();
    tag_part_ = TagPart::kCallHead;
  } else if (tag_name_ == "parameter" && where_ == Where::kCall) {
    tag_part_ = TagPart::kParameterHead;
  }
}

// What follows a tag's name and says nothing: up to ">", but not past the line or the next tag.
void AnswerMachine::StepInSkipped(char c) {
  if (c != '>' && c != '\n' && c != '<' && !IsControlSymbol(c)) return;
  tag_part_ = TagPart::kNone;
  OnTagEnd();
  if (c != '>') Step(c);
}

void AnswerMachine::OnTagEnd() {
  if (IsBlockName(tag_name_)) return OnBlockTag();
  if (closing_ && tag_name_ == "invoke" && where_ == Where::kCall) return EndCall();
  if (closing_ && tag_name_ == "parameter" && where_ == Where::kValue) return EndValue();
  if (InOpenCall()) Malformed(StrCat("the tag ", tag_name_, " out of place inside a call"));
  if (closing_ && tag_name_ == "invoke" && where_ != Where::kThinking) LeaveCall();
}

void AnswerMachine::OnBlockTag() {
  if (where_ == Where::kThinking && closing_) return;
  if (InOpenCall()) Malformed("the block ends or begins inside a call");
  LeaveCall();
}

void AnswerMachine::StepInHead(char c) {
  if (IsControlSymbol(c)) {
    tag_part_ = TagPart::kNone;
    // The "<" or "</" of the next tag was taken for a part of the head.
    held_ = head_.ends_with("</") ? "</" : head_.ends_with('<') ? "<" : "";
    Malformed("the head of a call or parameter is not as it must be");
    return Step(c);
  }
  head_ += c;
  if (c != '>') return;
  const bool ended = tag_part_ == TagPart::kCallHead ? ReadCallHead() : ReadParameterHead();
  if (ended) tag_part_ = TagPart::kNone;
}

// head_: ` name="f">`, or ` name="f"/>` for a call without parameters. Names may hold quotes and
// ">", so a
// ">" without a quote before it is the name's. Returns whether the head ended here.
bool AnswerMachine::ReadCallHead() {
  std::string_view head = TrimLeft(head_);
  head.remove_suffix(1);
  const bool self_closing = head.ends_with('/');
  if (self_closing) head.remove_suffix(1);
  head = TrimRight(head);
  constexpr std::string_view kBegin = "name=\"";
  if (!head.ends_with('"') || head.size() <= kBegin.size()) return false;
  if (!head.starts_with(kBegin)) {
    Malformed("a call without a name");
    return true;
  }
  const std::string_view name = head.substr(kBegin.size(), head.size() - kBegin.size() - 1);
  const size_t colons = name.find("::");
  const bool qualified = colons != name.npos && colons > 0;
  call_.name_space = qualified ? name.substr(0, colons) : "";
  call_.name = qualified ? name.substr(colons + 2) : name;
  if (call_.name.find("::") != call_.name.npos) {
    Malformed("a call's name with more than one namespace");
  } else if (self_closing) {
    EndCall();
  }
  return true;
}

// head_: ` name="k" string="true">`. The first such end counts, whatever the name holds before it.
bool AnswerMachine::ReadParameterHead() {
  std::string_view head = TrimLeft(head_);
  constexpr std::string_view kBegin = "name=\"";
  constexpr std::string_view kText = "\" string=\"true\">", kJson = "\" string=\"false\">";
  value_is_string_ = head.ends_with(kText);
  if (!value_is_string_ && !head.ends_with(kJson)) return false;
  head.remove_suffix(value_is_string_ ? kText.size() : kJson.size());
  if (!head.starts_with(kBegin)) {
    Malformed("a parameter without a name");
    return true;
  }
  const std::string_view key = head.substr(kBegin.size());
  if (!keys_.emplace(key).second) {
    Malformed(StrCat("the parameter ", key, " occurs twice"));
    return true;
  }
  if (keys_.size() > 1) call_.arguments += ", ";
  AppendJsonString(key, call_.arguments);
  call_.arguments += ": ";
  value_.clear();
  where_ = Where::kValue;
  return true;
}

void AnswerMachine::Hold(char c) {
  held_ += c;
  const bool with_newlines = where_ == Where::kThinking || where_ == Where::kContent;
  while (!MayBelongToTag(held_, with_newlines)) {
    Emit(held_[0]);
    held_.erase(0, 1);
  }
}

void AnswerMachine::Emit(char c) {
  switch (where_) {
    case Where::kThinking:
      return EmitText(AnswerDelta::Kind::kReasoning, {&c, 1});
    case Where::kContent:
      if (after_tag_ && IsSpace(c)) return;
      if (after_tag_ && has_content_) EmitText(AnswerDelta::Kind::kContent, "\n\n");
      after_tag_ = false;
      has_content_ = true;
      return EmitText(AnswerDelta::Kind::kContent, {&c, 1});
    case Where::kCall:
      if (!IsSpace(c)) Malformed("text between the parameters of a call");
      return;
    case Where::kValue:
      value_ += c;
      return;
    case Where::kBadCall:
    case Where::kEnded:
      return;
  }
}

void AnswerMachine::EmitText(AnswerDelta::Kind kind, std::string_view text) {
  if (deltas_.empty() || deltas_.back().kind != kind) deltas_.push_back({.kind = kind});
  deltas_.back().text += text;
}

void AnswerMachine::BeginCall() {
  if (InOpenCall()) Malformed("another call begins inside a call");
  call_ = {.arguments = "{"};
  keys_.clear();
  where_ = Where::kCall;
}

void AnswerMachine::EndValue() {
  where_ = Where::kCall;
  if (value_is_string_) {
    AppendJsonString(value_, call_.arguments);
  } else if (ParseJson(value_, kMaxJsonDepth - 1).ok()) {  // the arguments are a level of their own
    call_.arguments += value_;
  } else {
    Malformed("a parameter that is not a string is not JSON");
  }
}

void AnswerMachine::EndCall() {
  call_.arguments += '}';
  deltas_.push_back({.kind = AnswerDelta::Kind::kCall, .call = std::move(call_)});
  LeaveCall();
}

void AnswerMachine::LeaveCall() {
  where_ = Where::kContent;
  after_tag_ = true;
}

void AnswerMachine::Malformed(std::string_view problem) {
  if (num_malformed_++ == 0) first_problem_ = OneLine(problem);
  where_ = Where::kBadCall;
}

}  // namespace deepinfer
