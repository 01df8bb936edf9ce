// eval/story_plots.h: what happens in stories.
//
// A plot is a list of sentences, each with some wordings, "|" between. Placeholders:
//   {hero}, {friend}              names            {kind}, {friend kind}       "fox", "baker"
//   {a kind}, {a friend kind}     "a brave fox"    {he}, {He}, {his}, {him}    the hero
//   {thing}, {a thing}, {food}    "lamp"           {place}, {far place}        "the old bridge"
//   {colour}
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace deepinfer {

using StoryPlot = std::vector<std::string_view>;
const std::vector<StoryPlot>& StoryPlots();

}  // namespace deepinfer
