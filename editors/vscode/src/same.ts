// Whether two compilers say the same of a place, each in its own words. Both parse the same language with other parsers: places differ by a
// token or by a line, and messages share what they quote and little else.

export interface Said {
  kind: "error" | "warning" | undefined;
  message: string;
  /** Lines and characters from 0. */
  start: { line: number; character: number };
  end: { line: number; character: number };
  /** What stands there. */
  text: string;
}

/** Words of one line that two messages share before they count as the same. */
const ENOUGH_WORDS = 2;

export function isSame(one: Said, other: Said): boolean {
  if (one.kind === undefined || one.kind !== other.kind) {
    return false;
  }
  const apart = Math.max(one.start.line - other.end.line, other.start.line - one.end.line, 0);
  // A semicolon that is missing is reported at the end of its line by some, and at the start of the next by others.
  return apart <= 1 && (shares(quoted(one.message), quoted(other.message), 1) || (apart === 0 && isHere(one, other)));
}

/** On the same line: in much the same words, or at the same token where not both name what they are about. */
function isHere(one: Said, other: Said): boolean {
  const isNamed = quoted(one.message).size > 0 && quoted(other.message).size > 0;
  return shares(words(one.message), words(other.message), ENOUGH_WORDS) || (!isNamed && overlap(one, other));
}

/** Whether both are at the same token. What is about no place has an empty range, and what has no known column a whole line. */
function overlap(one: Said, other: Said): boolean {
  const before = (a: Said["start"], b: Said["start"]): boolean => a.line < b.line || (a.line === b.line && a.character < b.character);
  const isToken = ({ text }: Said): boolean => /^\S+$/.test(text.trim());
  return isToken(one) && isToken(other) && before(one.start, other.end) && before(other.start, one.end);
}

function shares(one: Set<string>, other: Set<string>, enough: number): boolean {
  return [...one].filter((part) => other.has(part)).length >= enough;
}

/** What a message quotes: names without their scopes and arguments, types and signs as they are. */
export function quoted(message: string): Set<string> {
  const found = firstLine(message).matchAll(/"([^"]+)"|'([^']+)'|`([^`]+)`|‘([^’]+)’/g);
  const texts = [...found].map((match) => (match[1] ?? match[2] ?? match[3] ?? match[4] ?? "").replace(/\s+/g, " ").trim());
  return new Set(texts.flatMap((text) => [text, /^(?:[\w:]*::)?(\w+)(?:<.*>)?(?:\(.*\))?$/.exec(text)?.[1] ?? text]).filter(Boolean));
}

/** The words that say what is wrong: not those that any message may have, nor what is quoted. */
function words(message: string): Set<string> {
  const plain = firstLine(message)
    .replace(/"[^"]*"|'[^']*'|`[^`]*`/g, " ")
    .toLowerCase();
  return new Set((plain.match(/[a-z]{5,}/g) ?? []).filter((word) => !COMMON.has(word)));
}

const COMMON = new Set(["error", "expected", "expression", "function", "provide", "should", "variable", "which", "within", "without"]);

function firstLine(message: string): string {
  return message.split("\n", 1)[0] ?? "";
}
