// tokens/answer_machine.h: the state machine behind the answer parser, one symbol at a time.
//
// The policy is written in answer_parser.h. Internal to the answer parser.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tokens/answer_parser.h"

namespace deepinfer {

class AnswerMachine {
 public:
  explicit AnswerMachine(bool in_thinking)
      : where_(in_thinking ? Where::kThinking : Where::kContent) {}

  void Read(std::string_view symbols);
  void Finish();
  std::vector<AnswerDelta> TakeDeltas() { return std::move(deltas_); }

  bool in_thinking() const { return where_ == Where::kThinking; }
  bool ended() const { return saw_eos_; }
  int num_malformed() const { return num_malformed_; }
  const std::string& first_problem() const { return first_problem_; }

 private:
  // What the symbols belong to, apart from tags.
  enum class Where {
    kThinking,
    kContent,  // also inside a block, outside its calls
    kCall,     // between the parameters of a call
    kValue,    // of a parameter
    kBadCall,  // a malformed call, until it ends
    kEnded,
  };
  // Which part of a tag is being read. The parts of a tag are name and rest, and the rest is the
  // head of a call or parameter or is skipped.
  enum class TagPart { kNone, kName, kSkipped, kCallHead, kParameterHead };

  void Step(char c);
  void StepOutsideTag(char c);
  void StepInTagName(char c);
  void StepInSkipped(char c);
  void StepInHead(char c);

  void BeginTag();
  void OnTagName();
  void OnTagEnd();
  void OnBlockTag();
  bool ReadCallHead();
  bool ReadParameterHead();

  void Hold(char c);
  void Emit(char c);
  void EmitText(AnswerDelta::Kind kind, std::string_view text);

  void BeginCall();
  void EndValue();
  void EndCall();
  void LeaveCall();  // back to content, whatever became of the call
  void Malformed(std::string_view problem);
  bool InOpenCall() const { return where_ == Where::kCall || where_ == Where::kValue; }

  Where where_;
  TagPart tag_part_ = TagPart::kNone;
  bool closing_ = false;  // the tag begins with </
  std::string tag_name_;
  std::string head_;        // of a call or parameter, from behind the name on
  std::string held_;        // outside tags: what may belong to a tag that follows
  bool after_tag_ = false;  // content: nothing but white space since the last tag
  bool has_content_ = false;

  ParsedCall call_;  // arguments: the open object
  std::set<std::string> keys_;
  bool value_is_string_ = false;
  std::string value_;

  bool saw_eos_ = false;
  int num_malformed_ = 0;
  std::string first_problem_;
  std::vector<AnswerDelta> deltas_;
};

}  // namespace deepinfer
