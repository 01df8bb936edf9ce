#include "statement.h"

#include <charconv>
#include <sstream>

namespace deepinfer::scenarios {
namespace {

std::vector<std::string> Words(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

Statement ParseOne(int line, const std::vector<std::string>& words) {
  Statement statement = {.line = line, .verb = words[0]};
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "=>") {
      statement.expected = Join(
          std::vector<std::string>(words.begin() + static_cast<int64_t>(i) + 1, words.end()), " ");
      break;
    }
    const size_t equals = word.find('=');
    if (equals == std::string::npos) {
      statement.names.push_back(word);
    } else {
      statement.values[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  return statement;
}

}  // namespace

std::vector<Statement> ParseStatements(std::string_view text) {
  std::vector<Statement> statements;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream parts(line.substr(0, line.find('#')));
    for (std::string part; std::getline(parts, part, ';');) {
      if (const auto words = Words(part); !words.empty()) {
        statements.push_back(ParseOne(number, words));
      }
    }
  }
  return statements;
}

StatusOr<int32_t> TakeNumber(Statement& statement, const std::string& key, int32_t fallback) {
  const auto at = statement.values.find(key);
  if (at == statement.values.end()) return fallback;
  const std::string text = at->second;
  statement.values.erase(at);
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  return InvalidArgument(statement.verb, ": expected a whole number for ", key, ", found '", text,
                         "'");
}

std::string TakeText(Statement& statement, const std::string& key, std::string_view fallback) {
  const auto at = statement.values.find(key);
  if (at == statement.values.end()) return std::string(fallback);
  std::string text = at->second;
  statement.values.erase(at);
  return text;
}

Status CheckAllTaken(const Statement& statement, size_t num_names) {
  if (statement.names.size() != num_names) {
    return InvalidArgument(statement.verb, ": expected ", num_names, " names, found ",
                           statement.names.size(), " ('", Join(statement.names, " "), "')");
  }
  if (statement.values.empty()) return OkStatus();
  return InvalidArgument(statement.verb, ": nothing is known of '", statement.values.begin()->first,
                         "'; README.md lists what is");
}

}  // namespace deepinfer::scenarios
