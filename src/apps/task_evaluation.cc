#include "apps/task_evaluation.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "apps/draft_loop.h"
#include "apps/perplexity.h"
#include "apps/task_answers.h"
#include "apps/task_items.h"
#include "base/check.h"
#include "base/log.h"
#include "base/progress.h"
#include "eval/grading.h"

namespace deepinfer {
namespace {

constexpr int32_t kItems = 200, kFillingItems = 100;  // of a task; filling: a context each
constexpr int32_t kFillingDraftShare = 4;             // one of so many is answered with drafts
constexpr int32_t kStories = 50;                      // of the perplexity's text, at most
constexpr int32_t kWindow = 2048;                     // tokens, of the perplexity
constexpr std::string_view kGlossTask = "gloss", kGlossFile = "gloss_check.tsv";

// They point into `text`.
std::vector<std::string_view> NonEmptyLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

class Evaluator {
 public:
  Evaluator(LoadedEngine& engine, Disk& disk, Clock& clock, const TaskEvaluationOptions& options)
      : engine_(engine),
        disk_(disk),
        clock_(clock),
        options_(options),
        published_tools_(NonEmptyLines(options.published_tools)) {}

  StatusOr<Evaluation> Run() {
    result_.model = engine_.info().model_directory;
    result_.seed = options_.seed;
    result_.max_answer_tokens = options_.max_answer_tokens;
    DI_RETURN_IF_ERROR(Draw());
    DI_RETURN_IF_ERROR(AnswerExact());
    DI_RETURN_IF_ERROR(AnswerBounded());
    DI_RETURN_IF_ERROR(AnswerWithDrafts());
    DI_RETURN_IF_ERROR(ScoreText());
    return std::move(result_);
  }

 private:
  bool IsAsked(const TaskKind& kind) const {
    const auto& names = options_.tasks;
    if (names.empty()) return kind.evaluated;
    return std::find(names.begin(), names.end(), kind.name) != names.end();
  }

  // ---- items

  Status Draw() {
    DI_RETURN_IF_ERROR(ReadGlossCheck());
    Status skipped;
    for (const TaskKind& kind : AllTasks()) {
      if (!IsAsked(kind)) continue;
      auto drawn = DrawTask(kind);
      if (drawn.ok()) {
        Add(*std::move(drawn));
        continue;
      }
      if (!options_.tasks.empty()) return Annotate(drawn.status(), "task ", kind.name);
      skipped = drawn.status();
      result_.skipped.emplace_back(kind.name, MessageOf(skipped));
    }
    return items_.empty() ? skipped : OkStatus();
  }

  Status ReadGlossCheck() {
    const std::string path = StrCat(engine_.info().model_directory, "/", kGlossFile);
    const TaskKind* const gloss = FindTask(kGlossTask);
    if (gloss == nullptr || !IsAsked(*gloss) || !disk_.IsFile(path)) return OkStatus();
    DI_ASSIGN_OR_RETURN(const std::string text, disk_.ReadText(path));
    DI_ASSIGN_OR_RETURN(gloss_check_, GlossCheck::Parse(text, path));
    return OkStatus();
  }

  StatusOr<TaskItems> DrawTask(const TaskKind& kind) const {
    if (kind.name == kGlossTask && !gloss_check_) {
      return FailedPrecondition("no ", kGlossFile, " in ", engine_.info().model_directory);
    }
    const int32_t usual = kind.fills ? kFillingItems : kItems;
    return DrawItems(kind, engine_,
                     {.num_items = options_.num_items > 0 ? options_.num_items : usual,
                      .seed = options_.seed,
                      .gloss_check = gloss_check_ ? &*gloss_check_ : nullptr,
                      .published_tools = published_tools_});
  }

  void Add(TaskItems drawn) {
    result_.tasks.push_back({.name = std::string(drawn.kind->name),
                             .total = static_cast<int32_t>(drawn.items.size()),
                             .num_in_training = drawn.num_in_training,
                             .split_by_key = drawn.kind->split_by_key,
                             .num_prompt_tokens = drawn.num_prompt_tokens()});
    items_.push_back(std::move(drawn));
  }

  // ---- the engine's answers

  // Of all tasks, graded into `right`.
  StatusOr<std::vector<std::vector<TaskAnswer>>> Answer(EngineCore& core, const char* mode,
                                                        int32_t TaskScore::*right) {
    DI_ASSIGN_OR_RETURN(const AnswerTokens tokens, AnswerTokens::Of(*engine_.tokenizer()));
    int64_t num_tokens = 0;
    for (const TaskScore& score : result_.tasks) num_tokens += score.num_prompt_tokens;
    Progress progress(StrCat("answering, ", mode), "prompt tokens", num_tokens, clock_);
    std::vector<std::vector<TaskAnswer>> all;
    for (size_t i = 0; i < items_.size(); ++i) {
      const std::vector<TaskItem>& items = items_[i].items;
      TaskScore& score = result_.tasks[i];
      DI_ASSIGN_OR_RETURN(std::vector<TaskAnswer> answers,
                          AnswerItems(core, items,
                                      {.tokens = tokens,
                                       .max_answer_tokens = options_.max_answer_tokens,
                                       .progress = [&](int64_t n) { progress.Add(n); }}));
      for (size_t k = 0; k < items.size(); ++k) {
        score.*right += IsRight(items[k].exercise, answers[k].parsed) ? 1 : 0;
      }
      LogInfo(mode, ": ", score.name, ": ", score.*right, " of ", score.total, " right");
      all.push_back(std::move(answers));
    }
    return all;
  }

  // One JSON object a line.
  Status WriteWrong() {
    if (options_.wrong == nullptr) return OkStatus();
    std::string lines;
    for (size_t i = 0; i < items_.size(); ++i) {
      for (size_t k = 0; k < items_[i].items.size(); ++k) {
        const TaskItem& item = items_[i].items[k];
        if (IsRight(item.exercise, answers_[i][k].parsed)) continue;
        lines += WrongAnswerJson(result_.tasks[i].name, item, answers_[i][k], *engine_.tokenizer());
      }
    }
    DI_RETURN_IF_ERROR(
        options_.wrong->Append({reinterpret_cast<const uint8_t*>(lines.data()), lines.size()}));
    return options_.wrong->Commit();
  }

  Status AnswerExact() {
    const MonotonicTime start = clock_.Now();
    DI_ASSIGN_OR_RETURN(answers_, Answer(engine_.core(), "exact", &TaskScore::right_exact));
    DI_RETURN_IF_ERROR(WriteWrong());
    for (size_t i = 0; i < answers_.size(); ++i) {
      for (const TaskAnswer& answer : answers_[i]) {
        result_.tasks[i].num_answer_tokens += std::ssize(answer.ids);
        result_.tasks[i].num_cut += answer.parsed.ended ? 0 : 1;
      }
    }
    result_.seconds.exact = Seconds(clock_.Now() - start);
    return OkStatus();
  }

  Status AnswerBounded() {
    const MonotonicTime start = clock_.Now();
    EngineCoreOptions options = engine_.core_options();
    options.scheduler.replay = ReplayMode::kBounded;
    DI_RETURN_IF_ERROR(CheckSchedulerOptions(options.scheduler));
    KvMemorySizes sizes = engine_.kv_sizes();
    sizes.num_snapshot_rings = options.scheduler.shape.num_encoder_layers;
    DI_ASSIGN_OR_RETURN(const auto instance, engine_.NewInstance(options, sizes));
    DI_RETURN_IF_ERROR(Answer(instance->core(), "bounded", &TaskScore::right_bounded).status());
    result_.seconds.bounded = Seconds(clock_.Now() - start);
    return OkStatus();
  }

  // ---- the same answers with drafts

  size_t NumDrafted(const TaskItems& drawn) const {
    const size_t total = drawn.items.size();
    if (options_.num_draft_items > 0) {
      return std::min(total, static_cast<size_t>(options_.num_draft_items));
    }
    return drawn.kind->fills ? (total + kFillingDraftShare - 1) / kFillingDraftShare : total;
  }

  Status AnswerWithDrafts() {
    const MonotonicTime start = clock_.Now();
    const ModelConfig& config = engine_.config();
    result_.has_drafts = config.num_nextn_predict_layers > 0;
    result_.temperatures = config.dspark_confidence_temperatures;
    result_.by_position.resize(static_cast<size_t>(config.dspark_block_size));
    RoutingLoad& load = result_.load.emplace(config);
    int64_t num_tokens = 0;
    for (size_t i = 0; i < items_.size(); ++i) {
      for (size_t k = 0; k < NumDrafted(items_[i]); ++k) {
        num_tokens += std::ssize(items_[i].items[k].prompt.ids) + std::ssize(answers_[i][k].ids);
      }
    }
    Progress progress("answering with drafts", "tokens", num_tokens, clock_);
    const DraftLoopOptions options = {.eos_id = config.eos_token_id,
                                      .load = &load,
                                      .progress = [&](int64_t n) { progress.Add(n); }};
    for (size_t i = 0; i < items_.size(); ++i) {
      DI_RETURN_IF_ERROR(DraftTask(i, options));
      result_.draft.Add(result_.tasks[i].draft);
    }
    result_.seconds.draft = Seconds(clock_.Now() - start);
    return OkStatus();
  }

  Status DraftTask(size_t task, const DraftLoopOptions& options) {
    const TaskItems& drawn = items_[task];
    std::vector<DraftPrompt> prompts;
    for (size_t k = 0; k < NumDrafted(drawn); ++k) {
      const std::vector<int32_t>& ids = drawn.items[k].prompt.ids;
      const auto room = static_cast<int32_t>(engine_.info().max_model_len - std::ssize(ids));
      prompts.push_back({.ids = ids, .max_output = std::min(options_.max_answer_tokens, room)});
    }
    DI_ASSIGN_OR_RETURN(const std::vector<DraftedAnswer> drafted,
                        RunDraftLoop(engine_.model(), prompts, options));
    DraftScore& score = result_.tasks[task].draft;
    for (size_t k = 0; k < drafted.size(); ++k) {
      Judge(drafted[k], score);
      score.num_different += drafted[k].ids == answers_[task][k].ids ? 0 : 1;
    }
    return OkStatus();
  }

  void Judge(const DraftedAnswer& answer, DraftScore& score) {
    ++score.num_answers;
    score.num_tokens += std::ssize(answer.ids);
    score.num_steps += std::ssize(answer.steps);
    for (const DraftStep& step : answer.steps) {
      score.num_accepted += step.num_accepted;
      for (int32_t k = 0; k < step.num_judged; ++k) {
        const double probability = Probability(step.confidences[static_cast<size_t>(k)]);
        result_.confidence.Add(probability, k < step.num_accepted);
        result_.by_position[static_cast<size_t>(k)].Add(probability, k < step.num_accepted);
      }
    }
  }

  // That a draft is accepted, given that those before it are. Source: serving.md 11.2.
  static double Probability(float logit) {
    constexpr double kLogitMax = 60;
    return 1 / (1 + std::exp(-std::clamp(static_cast<double>(logit), -kLogitMax, kLogitMax)));
  }

  // ---- perplexity

  Status ScoreText() {
    const MonotonicTime start = clock_.Now();
    PerplexityScore score = {.text = options_.text_name};
    std::string text = options_.text;
    if (text.empty()) {
      const TaskKind* const stories = FindTask("stories");
      if (stories == nullptr) return OkStatus();
      DI_ASSIGN_OR_RETURN(text, OwnStories(*stories));
      score.text = StrCat(NumStories(), " stories of the evaluation's own");
    }
    DI_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, engine_.EncodeText(text));
    tokens.erase(tokens.begin());  // every window has its own BOS
    const int32_t window = std::min(kWindow, engine_.info().max_model_len);
    Progress progress("scoring text", "tokens", std::ssize(tokens), clock_);
    const auto measured = MeasurePerplexity(engine_.core(), tokens,
                                            {.bos_id = engine_.config().bos_token_id,
                                             .window = window,
                                             .stride = window / 2,
                                             .progress = [&](int64_t n) { progress.Add(n); }});
    if (!measured.ok()) return Annotate(measured.status(), score.text);
    score.perplexity = measured->perplexity();
    score.num_tokens = measured->num_tokens;
    result_.perplexity = score;
    result_.seconds.perplexity = Seconds(clock_.Now() - start);
    return OkStatus();
  }

  int32_t NumStories() const {
    return options_.num_items > 0 ? std::min(kStories, options_.num_items) : kStories;
  }

  StatusOr<std::string> OwnStories(const TaskKind& stories) const {
    DI_ASSIGN_OR_RETURN(
        const TaskItems drawn,
        DrawItems(stories, engine_, {.num_items = NumStories(), .seed = options_.seed}));
    std::string text;
    for (const TaskItem& item : drawn.items) {
      text += TextOfMessage(item.exercise.answer()) + "\n\n";
    }
    return text;
  }

  LoadedEngine& engine_;
  Disk& disk_;
  Clock& clock_;
  const TaskEvaluationOptions& options_;
  std::optional<GlossCheck> gloss_check_;
  std::vector<std::string_view> published_tools_;  // of options_
  std::vector<TaskItems> items_;                   // one a task of result_
  std::vector<std::vector<TaskAnswer>> answers_;   // exact ones
  Evaluation result_;
};

}  // namespace

void DraftScore::Add(const DraftScore& other) {
  num_answers += other.num_answers;
  num_steps += other.num_steps;
  num_accepted += other.num_accepted;
  num_tokens += other.num_tokens;
  num_different += other.num_different;
}

bool Evaluation::IsSound() const {
  const auto is_held_out = [](const TaskScore& task) { return task.num_in_training == 0; };
  return draft.num_different == 0 && std::all_of(tasks.begin(), tasks.end(), is_held_out);
}

Status CheckTaskNames(const std::vector<std::string>& names) {
  std::vector<std::string_view> known;
  for (const TaskKind& kind : AllTasks()) {
    if (kind.evaluated) known.push_back(kind.name);
  }
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return InvalidArgument("--tasks: found \"", name, "\", expected of: ", Join(known, ", "));
  }
  return OkStatus();
}

StatusOr<Evaluation> EvaluateTasks(LoadedEngine& engine, Disk& disk, Clock& clock,
                                   const TaskEvaluationOptions& options) {
  CHECK(engine.core().options().replay == ReplayMode::kExact);
  DI_RETURN_IF_ERROR(CheckTaskNames(options.tasks));
  return Evaluator(engine, disk, clock, options).Run();
}

}  // namespace deepinfer
