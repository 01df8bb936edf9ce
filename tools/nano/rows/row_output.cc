#include "row_output.h"

#include <algorithm>
#include <cstdio>

namespace deepinfer {

std::string RowBytes(const Row& row) {
  std::string bytes;
  bytes.reserve(1 + 3 * row.tokens.ids.size());
  bytes += static_cast<char>(row.mix_idx);
  for (const int32_t id : row.tokens.ids) {
    bytes += static_cast<char>(id & 0xff);
    bytes += static_cast<char>(id >> 8);
  }
  for (const uint8_t weight : row.tokens.weights) bytes += static_cast<char>(weight);
  return bytes;
}

std::string RowText(const Row& row, std::string_view task, const Tokenizer& tokenizer) {
  const std::vector<int32_t>& ids = row.tokens.ids;
  const std::vector<uint8_t>& weights = row.tokens.weights;
  std::string text = StrCat("==== ", task, "\n");
  for (size_t begin = 0; begin < ids.size();) {
    const bool answer = weights[begin] == kAnswer;
    size_t end = begin;
    while (end < ids.size() && (weights[end] == kAnswer) == answer) ++end;
    const std::string run = tokenizer.Decode(std::span(ids).subspan(begin, end - begin));
    text += answer ? StrCat("«", run, "»\n") : run;
    begin = end;
  }
  return text + "\n";
}

RowStatistics::RowStatistics(const std::vector<MixPart>& mix) {
  for (const MixPart& part : mix) {
    tasks_.push_back(
        {.name = std::string(part.kind->name), .split_by_key = part.kind->split_by_key});
  }
}

void RowStatistics::AddKey(const std::string& task, const std::string& key, TaskCounts& counts) {
  ++counts.num_answers;
  if (counts.split_by_key && SplitOf(task, key) == Split::kHeldOut) ++counts.num_held_out;
  if (!counts.hashes.insert(HashOfKey(task, key)).second) ++counts.num_repeated;
}

void RowStatistics::Add(const Row& row) {
  TaskCounts& counts = tasks_[row.mix_idx];
  ++counts.num_rows;
  counts.num_tokens += std::ssize(row.tokens.ids);
  counts.num_answer_tokens +=
      std::count(row.tokens.weights.begin(), row.tokens.weights.end(), kAnswer);
  counts.num_conversations += std::ssize(row.exercises);
  for (const Exercise& exercise : row.exercises) {
    for (const std::string& key : exercise.earlier_keys) AddKey(exercise.task, key, counts);
    AddKey(exercise.task, exercise.key, counts);
  }
}

std::string RowStatistics::Text() const {
  std::string text =
      "task            rows     tokens  answer tokens  conversations    answers  held out  "
      "repeated\n";
  for (const TaskCounts& task : tasks_) {
    char line[160];
    std::snprintf(
        line, sizeof line, "%-12s %7lld %10lld %14lld %14lld %10lld %9lld %9lld\n",
        task.name.c_str(), static_cast<long long>(task.num_rows),
        static_cast<long long>(task.num_tokens), static_cast<long long>(task.num_answer_tokens),
        static_cast<long long>(task.num_conversations), static_cast<long long>(task.num_answers),
        static_cast<long long>(task.num_held_out), static_cast<long long>(task.num_repeated));
    text += line;
  }
  return text;
}

}  // namespace deepinfer
