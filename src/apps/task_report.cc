#include "apps/task_report.h"

#include <cstdio>

#include "apps/answer_collector.h"
#include "tokens/json.h"

namespace deepinfer {
namespace {

// ---- table

template <typename... Args>
void Append(std::string& text, const char* format, Args... args) {
  char line[512];
  std::snprintf(line, sizeof line, format, args...);
  text += line;
}

void AddTasks(std::string& text, const Evaluation& evaluation) {
  text +=
      "task          right of total    exact  bounded | prompt  answer tokens  cut | accepted\n";
  for (const TaskScore& task : evaluation.tasks) {
    Append(text, "%-12s %6d of %5d   %5.1f %%  %5.1f %% | %6.0f  %13.1f  %3d |", task.name.c_str(),
           task.right_exact, task.total, 100 * task.Exact(), 100 * task.Bounded(),
           static_cast<double>(task.num_prompt_tokens) / task.total,
           static_cast<double>(task.num_answer_tokens) / task.total, task.num_cut);
    if (evaluation.has_drafts && task.draft.num_steps > 0) {
      Append(text, " %8.2f", task.draft.AcceptedLength());
    }
    text += "\n";
  }
  for (const auto& [task, why] : evaluation.skipped) {
    Append(text, "%-12s skipped: ", task.c_str());
    text += StrCat(why, "\n");
  }
  text += "exact, bounded: replay modes; prompt, answer: means; cut: answers that did not end\n";
}

void AddCheck(std::string& text, const Evaluation& evaluation) {
  int32_t checked = 0, in_training = 0;
  for (const TaskScore& task : evaluation.tasks) {
    checked += task.split_by_key ? task.total : 0;
    in_training += task.num_in_training;
  }
  Append(text, "split check         %d items, no key twice, %d of them of training; seed %llu%s\n",
         checked, in_training, static_cast<unsigned long long>(evaluation.seed),
         evaluation.seed_of_weights ? " (of the weights' SHA-256)" : "");
}

void AddDrafts(std::string& text, const Evaluation& evaluation) {
  const DraftScore& draft = evaluation.draft;
  if (!evaluation.has_drafts) text += "accepted length     none: the model has no draft blocks\n";
  if (evaluation.has_drafts && draft.num_steps > 0) {
    Append(text,
           "accepted length     %.3f tokens a step with %zu drafts, %lld steps of %lld answers\n",
           draft.AcceptedLength(), evaluation.by_position.size(),
           static_cast<long long>(draft.num_steps), static_cast<long long>(draft.num_answers));
  }
  Append(text, "draft loop          %lld of %lld answers are not the engine's\n",
         static_cast<long long>(draft.num_different), static_cast<long long>(draft.num_answers));
  if (evaluation.confidence.num_events() == 0) return;
  Append(text, "confidence ECE      %.2f %% over %lld drafts; said / accepted / ECE by position:",
         100 * evaluation.confidence.Error(),
         static_cast<long long>(evaluation.confidence.num_events()));
  for (const Calibration& position : evaluation.by_position) {
    if (position.num_events() == 0) continue;
    Append(text, " %.2f/%.2f/%.1f%%", position.MeanProbability(), position.ShareHappened(),
           100 * position.Error());
  }
  text += evaluation.temperatures.empty() ? "; no temperatures\n" : "\n";
}

void AddRest(std::string& text, const Evaluation& evaluation) {
  if (evaluation.perplexity) {
    Append(text, "perplexity          %.4f over %lld tokens: %s\n",
           evaluation.perplexity->perplexity,
           static_cast<long long>(evaluation.perplexity->num_tokens),
           evaluation.perplexity->text.c_str());
  }
  if (evaluation.load && evaluation.load->num_tokens() > 0) {
    Append(text, "routing, max/mean  ");
    for (int32_t layer = 0; layer < evaluation.load->num_layers(); ++layer) {
      Append(text, " %.2f", evaluation.load->MaxOverMean(layer));
    }
    Append(text, "  (busiest expert by layer, %lld tokens)\n",
           static_cast<long long>(evaluation.load->num_tokens()));
  }
  const EvaluationSeconds& s = evaluation.seconds;
  Append(text, "seconds             exact %.1f, bounded %.1f, drafts %.1f, perplexity %.1f\n",
         s.exact, s.bounded, s.draft, s.perplexity);
}

// ---- JSON

JsonValue Array() { return {.kind = JsonValue::Kind::kArray}; }
JsonValue Bool(bool value) { return {.kind = JsonValue::Kind::kBool, .boolean = value}; }
JsonValue Object(std::initializer_list<std::pair<const char*, JsonValue>> members) {
  JsonValue object = JsonValue::Object();
  for (const auto& [key, value] : members) object.Set(key, value);
  return object;
}

JsonValue DraftJson(const DraftScore& draft, bool has_drafts) {
  const bool measured = has_drafts && draft.num_steps > 0;
  return Object({{"answers", JsonNumber(draft.num_answers)},
                 {"steps", JsonNumber(draft.num_steps)},
                 {"accepted_drafts", JsonNumber(draft.num_accepted)},
                 {"answer_tokens", JsonNumber(draft.num_tokens)},
                 {"accepted_length", measured ? JsonNumber(draft.AcceptedLength()) : JsonValue()},
                 {"different_answers", JsonNumber(draft.num_different)}});
}

JsonValue TaskJson(const TaskScore& task, bool has_drafts) {
  return Object({{"right", JsonNumber(int64_t{task.right_exact})},
                 {"total", JsonNumber(int64_t{task.total})},
                 {"exact", JsonNumber(task.Exact())},
                 {"bounded", JsonNumber(task.Bounded())},
                 {"right_bounded", JsonNumber(int64_t{task.right_bounded})},
                 {"prompt_tokens", JsonNumber(task.num_prompt_tokens)},
                 {"answer_tokens", JsonNumber(task.num_answer_tokens)},
                 {"cut", JsonNumber(int64_t{task.num_cut})},
                 {"split_by_key", Bool(task.split_by_key)},
                 {"items_in_training", JsonNumber(int64_t{task.num_in_training})},
                 {"draft", DraftJson(task.draft, has_drafts)}});
}

JsonValue CalibrationJson(const Calibration& calibration) {
  if (calibration.num_events() == 0) return Object({{"drafts", JsonNumber(int64_t{0})}});
  return Object({{"drafts", JsonNumber(calibration.num_events())},
                 {"confidence", JsonNumber(calibration.MeanProbability())},
                 {"accepted", JsonNumber(calibration.ShareHappened())},
                 {"ece", JsonNumber(calibration.Error())}});
}

JsonValue RoutingJson(const RoutingLoad& load) {
  JsonValue max_over_mean = Array(), layers = Array();
  for (int32_t layer = 0; layer < load.num_layers(); ++layer) {
    max_over_mean.items.push_back(JsonNumber(load.MaxOverMean(layer)));
    JsonValue& shares = layers.items.emplace_back(Array());
    for (int32_t expert = 0; expert < load.num_experts(); ++expert) {
      shares.items.push_back(JsonNumber(load.Share(layer, expert)));
    }
  }
  return Object({{"tokens", JsonNumber(load.num_tokens())},
                 {"max_over_mean", std::move(max_over_mean)},
                 {"share", std::move(layers)}});
}

void AddConfidence(const Evaluation& evaluation, JsonValue& out) {
  JsonValue positions = Array(), temperatures = Array();
  for (const Calibration& position : evaluation.by_position) {
    positions.items.push_back(CalibrationJson(position));
  }
  for (const double t : evaluation.temperatures) temperatures.items.push_back(JsonNumber(t));
  out.Set("confidence_by_position", std::move(positions));
  out.Set("confidence_temperatures", std::move(temperatures));
}

}  // namespace

std::string EvaluationTable(const Evaluation& evaluation) {
  std::string text = evaluation.model + "\n";
  AddTasks(text, evaluation);
  AddCheck(text, evaluation);
  AddDrafts(text, evaluation);
  AddRest(text, evaluation);
  return text;
}

std::string EvaluationJson(const Evaluation& evaluation) {
  JsonValue tasks = JsonValue::Object(), skipped = JsonValue::Object();
  for (const TaskScore& task : evaluation.tasks) {
    tasks.Set(task.name, TaskJson(task, evaluation.has_drafts));
  }
  for (const auto& [task, why] : evaluation.skipped) skipped.Set(task, JsonValue::String(why));
  const bool has_lengths = evaluation.has_drafts && evaluation.draft.num_steps > 0;
  const bool has_confidence = evaluation.confidence.num_events() > 0;
  const auto& text = evaluation.perplexity;
  JsonValue out = Object(
      {{"model", JsonValue::String(evaluation.model)},
       {"tasks", std::move(tasks)},
       {"skipped", std::move(skipped)},
       {"accepted_length",
        has_lengths ? JsonNumber(evaluation.draft.AcceptedLength()) : JsonValue()},
       {"confidence_ece", has_confidence ? JsonNumber(evaluation.confidence.Error()) : JsonValue()},
       {"perplexity", text ? JsonNumber(text->perplexity) : JsonValue()},
       {"perplexity_tokens", text ? JsonNumber(text->num_tokens) : JsonValue()},
       {"perplexity_text", text ? JsonValue::String(text->text) : JsonValue()},
       {"seed", JsonNumber(evaluation.seed)},
       {"seed_of_weights", Bool(evaluation.seed_of_weights)},
       {"max_answer_tokens", JsonNumber(int64_t{evaluation.max_answer_tokens})},
       {"draft", DraftJson(evaluation.draft, evaluation.has_drafts)}});
  AddConfidence(evaluation, out);
  if (evaluation.load && evaluation.load->num_tokens() > 0) {
    out.Set("routing", RoutingJson(*evaluation.load));
  }
  out.Set("seconds", Object({{"exact", JsonNumber(evaluation.seconds.exact)},
                             {"bounded", JsonNumber(evaluation.seconds.bounded)},
                             {"draft", JsonNumber(evaluation.seconds.draft)},
                             {"perplexity", JsonNumber(evaluation.seconds.perplexity)}}));
  return DumpJson(out) + "\n";
}

}  // namespace deepinfer
