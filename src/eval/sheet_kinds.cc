// The vocabulary of eval/fact_sheets.h.

#include "eval/fact_sheets.h"

namespace deepinfer {
namespace {

SheetKind Person() {
  return {"person",
          "people",
          "This person",
          {"name|full_name", "{}", Domain::kFullName},
          {{"age|years", "is {} years old", Domain::kAge},
           {"city|home|town", "lives in {}", Domain::kCity},
           {"email|mail", "can be reached at {}", Domain::kMail},
           {"job|profession", "works as {a}", Domain::kJob},
           {"married|is_married", "is married|is not married", Domain::kBool},
           {"born|birth_date", "was born on {}", Domain::kDate},
           {"likes|interests", "likes {}", Domain::kWords},
           {"children|num_children", "has {} children", Domain::kSmall},
           {"country|born_in", "comes from {}", Domain::kCountry},
           {"favorite_color|color", "likes the color {} best", Domain::kColour},
           {"friends|friend_names", "is a friend of {}", Domain::kFirstNames}}};
}

SheetKind Product() {
  return {"product",
          "products",
          "It",
          {"name|product", "{}", Domain::kTitle},
          {{"price|price_eur", "costs {} euros", Domain::kDecimal},
           {"stock|in_stock", "is in stock {} times", Domain::kAmount},
           {"color|colour", "is {}", Domain::kColour},
           {"weight|weight_kg", "weighs {} kg", Domain::kDecimal},
           {"code|sku|id", "has the code {}", Domain::kCode},
           {"size|format", "comes in size {}", Domain::kOption, "small|medium|large"},
           {"new|is_new", "is new|is not new", Domain::kBool},
           {"tags|labels", "has the tags {}", Domain::kWords},
           {"made_in|origin", "is made in {}", Domain::kCountry}}};
}

SheetKind Book() {
  return {"book",
          "books",
          "It",
          {"title|name", "{}", Domain::kTitle},
          {{"author|writer", "was written by {}", Domain::kFullName},
           {"year|published", "came out in {}", Domain::kYear},
           {"pages|num_pages", "has {} pages", Domain::kAmount},
           {"genre|kind", "is a {} story", Domain::kOption, "crime|love|travel|science"},
           {"language|lang", "is written in {}", Domain::kOption, "English|French|German|Spanish"},
           {"lent|borrowed", "is lent out|is not lent out", Domain::kBool},
           {"shelf|place", "stands on shelf {}", Domain::kCode},
           {"heroes|characters", "is about {}", Domain::kFirstNames}}};
}

SheetKind Event() {
  return {"event",
          "events",
          "It",
          {"title|event|name", "{}", Domain::kTitle},
          {{"date|day", "takes place on {}", Domain::kDate},
           {"city|location", "is held in {}", Domain::kCity},
           {"time|start", "starts at {}", Domain::kTime},
           {"minutes|duration", "lasts {} minutes", Domain::kMinutes},
           {"guests|visitors", "has {} guests", Domain::kAmount},
           {"speakers|hosts", "has the speakers {}", Domain::kFirstNames},
           {"online|is_online", "is online|is not online", Domain::kBool},
           {"ticket_price|price", "costs {} euros", Domain::kDecimal}}};
}

SheetKind Pet() {
  return {"pet",
          "pets",
          "This animal",
          {"name|pet_name", "{}", Domain::kFirstName},
          {{"species|animal|kind", "is {a}", Domain::kAnimal},
           {"age|age_years", "is {} years old", Domain::kSmall},
           {"color|colour", "has {} hair", Domain::kColour},
           {"weight|weight_kg", "weighs {} kg", Domain::kDecimal},
           {"owner|belongs_to", "belongs to {}", Domain::kFullName},
           {"food|eats", "likes to eat {}", Domain::kFood},
           {"healthy|is_healthy", "is healthy|is not healthy", Domain::kBool},
           {"toys|plays_with", "plays with {}", Domain::kWords}}};
}

SheetKind Order() {
  return {"order",
          "orders",
          "It",
          {"id|order_id|number", "Order {}", Domain::kCode},
          {{"customer|buyer", "was placed by {}", Domain::kFullName},
           {"item|product", "contains {a}", Domain::kObject},
           {"total|price", "costs {} euros", Domain::kDecimal},
           {"date|ordered_on", "was placed on {}", Domain::kDate},
           {"paid|is_paid", "is paid|is not paid", Domain::kBool},
           {"status|state", "is {}", Domain::kOption, "open|packed|shipped|lost"},
           {"city|ship_to", "goes to {}", Domain::kCity},
           {"boxes|parcels", "fills {} boxes", Domain::kSmall}}};
}

SheetKind Flight() {
  return {"flight",
          "flights",
          "It",
          {"flight|number|id", "Flight {}", Domain::kCode},
          {{"origin|from", "leaves from {}", Domain::kCity},
           {"destination|to", "goes to {}", Domain::kCity},
           {"date|day", "flies on {}", Domain::kDate},
           {"time|departure", "leaves at {}", Domain::kTime},
           {"gate|gate_code", "uses gate {}", Domain::kCode},
           {"delayed|late", "is delayed|is not delayed", Domain::kBool},
           {"minutes|duration", "takes {} minutes", Domain::kMinutes},
           {"seats|free_seats", "has {} free seats", Domain::kAmount},
           {"pilot|captain", "is flown by {}", Domain::kFullName}}};
}

SheetKind Recipe() {
  return {"recipe",
          "recipes",
          "It",
          {"name|title|dish", "{}", Domain::kTitle},
          {{"minutes|time", "takes {} minutes", Domain::kMinutes},
           {"servings|portions", "is enough for {} people", Domain::kSmall},
           {"ingredients|needs", "needs {}", Domain::kWords},
           {"vegetarian|no_meat", "is vegetarian|is not vegetarian", Domain::kBool},
           {"level|difficulty", "is {} to make", Domain::kOption, "easy|normal|hard"},
           {"cook|author", "was written by {}", Domain::kFirstName},
           {"country|origin", "comes from {}", Domain::kCountry}}};
}

SheetKind Company() {
  return {"company",
          "companies",
          "This company",
          {"name|company", "The company {}", Domain::kTitle},
          {{"city|office", "has its office in {}", Domain::kCity},
           {"founded|since", "was founded in {}", Domain::kYear},
           {"employees|staff", "has {} employees", Domain::kAmount},
           {"manager|head", "is led by {}", Domain::kFullName},
           {"public|listed", "is listed|is not listed", Domain::kBool},
           {"product|makes", "makes {a}", Domain::kObject},
           {"contact|email", "can be reached at {}", Domain::kMail},
           {"partners|works_with", "works with {}", Domain::kFirstNames}}};
}

SheetKind Room() {
  return {"room",
          "rooms",
          "It",
          {"room|id|code", "Room {}", Domain::kCode},
          {{"floor|level", "is on floor {}", Domain::kSmall},
           {"area|square_meters", "measures {} square meters", Domain::kDecimal},
           {"free|available", "is free|is not free", Domain::kBool},
           {"seats|chairs", "has {} seats", Domain::kAge},
           {"wall_color|color", "has {} walls", Domain::kColour},
           {"equipment|contains", "contains {}", Domain::kWords},
           {"user|booked_by", "is used by {}", Domain::kFullName},
           {"type|use", "is used as {a}", Domain::kOption, "office|kitchen|library|workshop"}}};
}

}  // namespace

const std::vector<SheetKind>& SheetKinds() {
  static const auto* const kKinds = new std::vector<SheetKind>{
      Person(), Product(), Book(), Event(), Pet(), Order(), Flight(), Recipe(), Company(), Room()};
  return *kKinds;
}

}  // namespace deepinfer
