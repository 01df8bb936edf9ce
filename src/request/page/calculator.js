// calculator.js: arithmetic without eval, which the policy of the page forbids.
//
//   sum = product (("+" | "-") product)*      product = sign (("*" | "/" | "%") sign)*
//   sign = ("-" | "+") sign | power           power = atom ("^" sign)?
//   atom = number | name | name "(" sum ")" | "(" sum ")"

const kConstants = {
  pi: Math.PI,
  e: Math.E
};
const kFunctions = {
  sqrt: Math.sqrt,
  abs: Math.abs,
  round: Math.round,
  floor: Math.floor,
  ceil: Math.ceil,
  ln: Math.log,
  log: Math.log10,
  exp: Math.exp,
  sin: Math.sin,
  cos: Math.cos,
  tan: Math.tan,
};
const kMaxDepth = 100;
const kToken = /\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)|([a-zA-Z]+)|(\*\*|[-+*/%^()]))/y;

function tokensOf(text) {
  const source = text.replaceAll('×', '*').replaceAll('÷', '/').replaceAll('−', '-').trimEnd();
  const tokens = [];
  kToken.lastIndex = 0;
  while (kToken.lastIndex < source.length) {
    const at = kToken.lastIndex;
    const match = kToken.exec(source);
    if (!match) throw new Error(`"${source.slice(at, at + 12)}" is not arithmetic`);
    tokens.push(match[3] === '**' ? '^' : match[1] ?? match[2] ?? match[3]);
  }
  return tokens;
}

// The value of an expression such as "2 * (3 + 4)^2". Throws an Error that names the fault.
export function calculate(text) {
  const tokens = tokensOf(text);
  let at = 0;
  let depth = 0;

  const take = (token) => tokens[at] === token && ++at > 0;
  function expect(token) {
    if (!take(token)) throw new Error(`expected "${token}", found "${tokens[at] ?? 'the end'}"`);
  }
  function nested(parse) {
    if (++depth > kMaxDepth) throw new Error('nested too deeply');
    const value = parse();
    --depth;
    return value;
  }
  function sum() {
    let value = product();
    for (;;) {
      if (take('+'))
        value += product();
      else if (take('-'))
        value -= product();
      else
        return value;
    }
  }
  function product() {
    let value = sign();
    for (;;) {
      if (take('*'))
        value *= sign();
      else if (take('/'))
        value /= sign();
      else if (take('%'))
        value %= sign();
      else
        return value;
    }
  }
  function sign() {
    if (take('-')) return -nested(sign);
    if (take('+')) return nested(sign);
    const base = atom();
    return take('^') ? base ** nested(sign) : base;
  }
  function atom() {
    if (take('(')) {
      const value = nested(sum);
      expect(')');
      return value;
    }
    const token = tokens[at++];
    if (token !== undefined && /^[\d.]/.test(token)) return Number(token);
    if (Object.hasOwn(kConstants, token ?? '')) return kConstants[token];
    if (!Object.hasOwn(kFunctions, token ?? '')) {
      throw new Error(`expected a number, found "${token ?? 'the end'}"`);
    }
    expect('(');
    const value = nested(sum);
    expect(')');
    return kFunctions[token](value);
  }

  const value = sum();
  if (at < tokens.length) throw new Error(`expected an operator, found "${tokens[at]}"`);
  return value;
}
