// tools/nano/rows/row_output.h: rows as the trainer reads them, as people do, and in numbers.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "row_maker.h"

namespace deepinfer {

// One byte: the task's place in the mix; the ids, two bytes each, little-endian; the weights, a
// byte each.
std::string RowBytes(const Row& row);

// The row's text, with what is learnt as an answer between « and ».
std::string RowText(const Row& row, std::string_view task, const Tokenizer& tokenizer);

// What a stream of rows holds, by task.
class RowStatistics {
 public:
  explicit RowStatistics(const std::vector<MixPart>& mix);
  void Add(const Row& row);
  // A table: a line a task.
  std::string Text() const;

 private:
  struct TaskCounts {
    std::string name;
    bool split_by_key;
    int64_t num_rows = 0, num_tokens = 0, num_answer_tokens = 0;
    int64_t num_conversations = 0, num_answers = 0;
    int64_t num_held_out = 0;   // answers whose key is not for training: always 0
    int64_t num_repeated = 0;   // answers whose key was there before
    std::set<uint64_t> hashes;  // of keys
  };
  static void AddKey(const std::string& task, const std::string& key, TaskCounts& counts);

  std::vector<TaskCounts> tasks_;
};

}  // namespace deepinfer
