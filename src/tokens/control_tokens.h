// tokens/control_tokens.h: the spelling of the tokens that steer a DeepSeek-V4.1 conversation.
//
// Bars are U+FF5C, the low line is U+2581. Ids are the tokenizer's business (Tokenizer::IdOf).
#pragma once

#include <string_view>

namespace deepinfer {

inline constexpr std::string_view kBosToken = "<｜begin▁of▁sentence｜>";
inline constexpr std::string_view kEosToken = "<｜end▁of▁sentence｜>";
inline constexpr std::string_view kSystemToken = "<｜System｜>";
inline constexpr std::string_view kUserToken = "<｜User｜>";
inline constexpr std::string_view kAssistantToken = "<｜Assistant｜>";
inline constexpr std::string_view kReminderToken = "<｜latest_reminder｜>";
inline constexpr std::string_view kThinkStartToken = "<think>";
inline constexpr std::string_view kThinkEndToken = "</think>";
// Marks tool-call markup; ordinary characters around it make the tags: <｜DSML｜ invoke name="f">.
inline constexpr std::string_view kDsmlToken = "｜DSML｜";
inline constexpr std::string_view kImageToken = "<｜deepseek_image｜>";

// Tag names as they follow kDsmlToken.
inline constexpr std::string_view kCallsTag = " calls";
inline constexpr std::string_view kInvokeTag = " invoke";
inline constexpr std::string_view kParameterTag = " parameter";

}  // namespace deepinfer
