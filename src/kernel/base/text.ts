import type { JsonValue } from "./json-value.ts";
import type { Hash } from "./sources.ts";

/** Length of a value's JSON text, in characters, from which a store saves the value separately as a content. */
export const contentThreshold = 4_096;

/** Hashes of long texts, by hash function, by the frozen object that holds the text, and by the name of its member. */
const known = new WeakMap<Hash, WeakMap<object, Map<string | number, string>>>();

/**
 * Whether a text is represented by its hash, in digests and in the content table of a store. A text with half a
 * surrogate pair is not, because it has no UTF-8 form; a text with a NUL character is not, because some versions of
 * `node:sqlite` cut it there.
 */
export function isLongText(text: string): boolean {
  return text.length >= contentThreshold && text.isWellFormed() && !text.includes("\0");
}

/**
 * Returns the hash of a text that is a member of an object. A text in a frozen object is hashed only once. For
 * example, the result of a tool is hashed when it is recorded, and not again for the digest of the transcript or
 * for the session. Bench: `sessions`, row "large results".
 */
export function longTextHash(holder: object, member: string | number, text: string, hash: Hash): string {
  if (!Object.isFrozen(holder)) return hash(text);
  let holders = known.get(hash);
  if (holders === undefined) known.set(hash, (holders = new WeakMap()));
  let hashes = holders.get(holder);
  if (hashes === undefined) holders.set(holder, (hashes = new Map()));
  let digest = hashes.get(member);
  if (digest === undefined) hashes.set(member, (digest = hash(text)));
  return digest;
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Escapes the characters that have a meaning in HTML and XML, so that the text is shown as it is. */
export function escapeMarkup(text: string): string {
  return text.replaceAll(/[&<>"']/gu, (character) => entities[character] ?? character);
}

/** A pattern that is searched in texts. */
export interface TextPattern {
  /** Whether the text contains a match. */
  test(text: string): boolean;
  /** Returns the matches that are not empty, in the order of the text. `to` is exclusive. */
  finds(text: string): readonly TextSpan[];
}

/** A part of a text, in UTF-16 units. */
export type TextSpan = readonly [from: number, to: number];

/** How a pattern is compiled. */
export interface PatternUse {
  /** The function or option that takes the pattern, for errors. */
  readonly owner: string;
  /**
   * Whether a pattern that needs backtracking is accepted. With such a pattern, some texts take exponential time
   * and block the process. Default: `false`.
   */
  readonly allowBacktracking?: boolean;
}

/**
 * Compiles a pattern so that a search takes time linear in the length of the text. Throws `invalid_argument` for a
 * pattern that needs backtracking, unless `allowBacktracking` is set.
 */
export type CompilePattern = (pattern: RegExp, use: PatternUse) => TextPattern;

/** The text that replaces a removed secret. */
const mark = "[secret]";

/** Matches a private key in PEM or PGP armour, also one whose end was cut off. */
const armoured =
  /-----BEGIN (?:[A-Z\d]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----)){0,32000}(?:-----END [A-Z\d ]{0,60}-----)?/gu;

/** Matches keys with a prefix or a shape that identifies the provider. */
const marked = new RegExp(
  [
    // GitHub, GitLab, Hugging Face, Replicate, Slack, npm, PyPI, Docker, Shopify, Grafana, Linear, Notion, Supabase
    String.raw`\b(?:gh[opsur]_|github_pat_|glpat-|hf_|r8_|xox[abeprs]-|xapp-|pypi-|dckr_pat_|shp(?:at|ca|pa|ss)_|glsa_|lin_api_|ntn_|sbp_)[\w-]{10,400}|\bnpm_[A-Za-z\d]{30,60}`,
    // Google: API keys, access tokens, client secrets
    String.raw`\bAIza[\w-]{30,60}|\bya29\.[\w-]{10,400}|\bGOCSPX-[\w-]{10,60}`,
    // AWS: key ids, Bedrock keys
    String.raw`\bA(?:KIA|SIA|BIA|CCA)[A-Z\d]{12,20}|\bABSK[A-Za-z\d+/=]{40,300}`,
    // SendGrid, signing secrets of Stripe, DigitalOcean, Databricks
    String.raw`\bSG\.[\w-]{10,60}\.[\w-]{10,100}|\bwhsec_[\w+/=-]{10,200}|\bdo[opr]_v1_[\da-f]{20,200}|\bdapi[\da-f]{32}`,
    // Azure: client secrets, keys of services
    String.raw`\b[\w.~-]{3}\dQ~[\w.~-]{30,40}|\b[A-Za-z\d]{20,60}JQQJ99[A-Za-z\d]{20,40}`,
    // JSON Web Tokens, age keys
    String.raw`\beyJ[\w-]{10,2000}\.[\w-]{10,2000}(?:\.[\w-]{0,2000})?|\bAGE-SECRET-KEY-1[A-Z\d]{20,80}`,
  ].join("|"),
  "gu",
);

/**
 * Matches keys with a prefix that also begins ordinary words such as `key-value`. A match counts as a key only if
 * it contains a digit.
 */
const numbered = /\b(?:sk|rk|pk|gsk|xai|pplx|fw|nvapi|key)[-_][\w-]{12,200}/gu;

/** Matches credentials after the name of a scheme, as in `Authorization: Bearer …`. */
const carried = /\b((?:Bearer|Basic|Token)(?:\s{1,4}|%20))([\w.~+/=-]{8,4000})/giu;

const names =
  "(?:x-)?(?:api|access|account|auth|client|(?<![a-z])id|private|refresh|secret|security|session|subscription)[-_ ]?(?:key|token|secret)|secret|password|passwd|passphrase|pwd|signature|authorization|credentials?";

// The backslashes occur in JSON that is quoted itself.
const afterName = String.raw`(?:${names})(?:\\{0,3}["'])?\s{0,4}(?:[:=]|%3[AD])\s{0,4}`;
const scheme = String.raw`(?:(?:Bearer|Basic|Token|Digest|Negotiate)(?:\s{1,4}|%20))?`;

/** Matches a quoted credential after a name: `"apiKey": "…"`, `password='…'`. */
const [namedInDouble, namedInSingle] = [namedIn('"'), namedIn("'")];

function namedIn(quote: string): RegExp {
  const value = String.raw`(?:[^${quote}\\\r\n]|\\+[^${quote}\\\r\n]){1,4000}`;
  return new RegExp(String.raw`(${afterName}\\{0,3}${quote}${scheme})(${value})`, "giu");
}

/** Matches a credential after a name: `api_key=…`, `x-api-key: …`, `AccountKey=…`, `Authorization: Bearer …`. */
const named = new RegExp(String.raw`(${afterName}${scheme})([^\s"'&,;]{4,4000})`, "giu");

/**
 * Matches ordinary words that a message writes after a name where a credential would be, as in `password:
 * required`.
 */
const isPlainWord =
  /^(?:absent|basic|bearer|boolean|cannot|denied|digest|disabled|EACCES|ECONNREFUSED|ECONNRESET|EEXIST|EISDIR|empty|ENOENT|ENOTDIR|ENOTFOUND|EPERM|EROFS|ETIMEDOUT|error|expected|expired|failed|false|forbidden|from|incorrect|invalid|malformed|mismatch|missing|must|negotiate|none|null|number|object|optional|please|refused|rejected|required|revoked|should|string|token|true|unauthorized|unavailable|undefined|unknown|unset|wrong)[.!?:)\]}]{0,3}$/iu;

const cookie = String.raw`[\w!#$%&*.^|~+-]{1,100}=[^\r\n"'\]]{1,4000}`;

/** Matches the values of cookies: `Cookie: a=1; b=2`, `Set-Cookie: …`, and a list of them in JSON. */
const cookies = new RegExp(
  String.raw`((?:set-)?cookie2?["']?\s{0,4}[:=]\s{0,4}\[?\s{0,4}["']?)${cookie}(?:["']\s{0,4},\s{0,4}["']${cookie}){0,50}`,
  "giu",
);

/** Matches credentials in a URL: `?key=…`, and the user name and password before the host. */
const inQuery = /([?&](?:key|token|sig|code|auth)=)[^\s"'&#]{4,4000}/giu;
const inAuthority = /(\b[a-z][a-z\d+.-]{1,20}:\/\/)[^\s/@:]{0,200}:[^\s/@]{1,200}@/giu;

/**
 * Matches a text with the length of a secret key of AWS, which has no prefix: 40 characters of Base64, also in the
 * encoding for URLs.
 */
const awsLong = /(?:(?<![\w/+%-])|(?<=%3[Dd]))(?:[A-Za-z\d/+]|%2[BbFf]){40}(?![\w/+=%-])/gu;

/**
 * Minimum number of words and numbers in 40 characters that count as random. Random characters contain about 22,
 * and paths at most 10.
 */
const fewestWords = 12;

/** Matches a hexadecimal number of at least 128 bits that is not a part of a name, a path or an address. */
const hexLong = /(?<![\w/+.@#-])(?:0x)?[\dA-Fa-f]{32,128}(?![\w/+=@-])/gu;

/** Number of characters before and after a hexadecimal number that are read to find out what the number is. */
const contextLength = 160;

const hashOrId =
  "address|blob|block|bytes|checkout|checksum|commit|container|content|digest|etag|fingerprint|hash|head|ids?|image|integrity|layer|md5|merge|object|parent|pathspec|ref|reference|request|rev|revision|run|seed|session|sha|sha-?\\d{1,3}|span|tag|task|trace|transaction|tree|tx|uuid|v|version";

/**
 * Matches the text between a word and the hexadecimal number that it describes: `commit <hex>`, `"id":"<hex>"`,
 * `hash of the file is <hex>`.
 */
const joint = String.raw`(?: of(?: the)? \w{1,30})?\\{0,3}["']?\s{0,4}(?:[:=]|is|was)?\s{0,4}(?:W\/)?\\{0,3}["'(<[]?`;

/** Matches text directly before a hexadecimal number that says that the number is a hash or an id. */
const saysHash = new RegExp(
  String.raw`\b(?:(?:${hashOrId})${joint}|(?:branch|head|tag)\b[^.:;\n]{0,60} at )$`,
  "iu",
);

/**
 * Matches text directly before a hexadecimal number that compares two hashes, if the text does not speak of a
 * secret.
 */
const compares = new RegExp(String.raw`\b(?:actual|computed|expected|got)${joint}$`, "iu");
const aboutSecret =
  /\b(?:keys?|auth|authorization|credentials?|passphrase|password|secret|signature|token)\b/iu;

/** Matches text directly after a hash: the extension of a file name, or what git writes about an object. */
const afterHash =
  /^(?:\.[a-z\d]{1,5}(?![\w])|["']? is (?:not )?an? (?:ancestor|blob|commit|descendant|object|tag|tree)\b)/u;

/**
 * Removes keys, tokens, cookies and passwords from a text before it is stored, emitted or shown. Errors of
 * providers and clients often quote them. It recognises the usual forms and does not prove that a text contains no
 * secret. Costs linear time.
 */
export function withoutSecrets(text: string): string {
  return withoutSecretsUnder("", text);
}

/** Removes the secrets from a text that is a member of an object. `name` is the name of the member. */
function withoutSecretsUnder(name: string, text: string): string {
  const hexHidden = (found: string, offset: number, whole: string): string =>
    isHashOrId(`${name} ${whole.slice(Math.max(0, offset - contextLength), offset)}`) ||
    afterHash.test(whole.slice(offset + found.length, offset + found.length + contextLength))
      ? found
      : hiddenHex(found);
  return text
    .replace(armoured, mark)
    .replace(cookies, `$1${mark}`)
    .replace(marked, mark)
    .replace(numbered, (found) => hidden(found))
    .replace(carried, replaced)
    .replace(namedInDouble, replacedByName)
    .replace(namedInSingle, replacedByName)
    .replace(named, replacedByName)
    .replace(inQuery, `$1${mark}`)
    .replace(inAuthority, `$1${mark}@`)
    .replace(awsLong, (found) => (isRandom(found) ? mark : found))
    .replace(hexLong, hexHidden);
}

/** Whether 40 characters are a secret key and not a path, an identifier or a hash in hexadecimal digits. */
function isRandom(text: string): boolean {
  const plain = text.replaceAll(/%2F/giu, "/").replaceAll(/%2B/giu, "+");
  if (!/\d/u.test(plain) || !/[g-z]/u.test(plain) || !/[A-Z]/u.test(plain)) return false;
  return (plain.match(/[A-Z]?[a-z]+|[A-Z]+|\d+/gu) ?? []).length >= fewestWords;
}

/**
 * Whether the words directly before a hexadecimal number say that it is a hash or an id, such as `commit` or
 * `requestId`.
 */
function isHashOrId(before: string): boolean {
  const words = before.replaceAll(/([a-z\d])([A-Z])/gu, "$1 $2").replaceAll("_", " ");
  return saysHash.test(words) || (compares.test(words) && !aboutSecret.test(words));
}

/** Hides a hexadecimal number unless it cannot be a key: it has only decimal digits, or repeats one digit. */
function hiddenHex(found: string): string {
  return /\d/u.test(found) && /[a-f]/iu.test(found) && new Set(found).size > 5 ? mark : found;
}

const isName = new RegExp(`^(?:${names}|(?:set-)?cookie)$`, "iu");

/**
 * Removes the secrets from each text in a value, like `withoutSecrets`. A text under a name such as `apiKey` is
 * replaced as a whole.
 */
export function withoutSecretsIn(value: JsonValue): JsonValue {
  if (typeof value === "string") return withoutSecrets(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map(withoutSecretsIn);
  const entries = Object.entries(value as Readonly<Record<string, JsonValue>>);
  return Object.fromEntries(entries.map(([name, each]) => [name, memberWithoutSecrets(name, each)]));
}

function memberWithoutSecrets(name: string, value: JsonValue): JsonValue {
  if (typeof value !== "string") return withoutSecretsIn(value);
  return isName.test(name) ? mark : withoutSecretsUnder(name, value);
}

function replaced(_found: string, before: string, value: string): string {
  return before + hidden(value);
}

function replacedByName(found: string, before: string, value: string, offset: number, whole: string): string {
  // The name of a file, as in `/etc/passwd: permission denied`, is followed by a message and not by a credential.
  if (whole[offset - 1] === "/" && before.endsWith(": ")) return found;
  return before + (isPlainWord.test(value) ? value : mark);
}

/**
 * Replaces a value by the mark for hidden text, unless it contains no digit, as in `basic settings` or
 * `key-value-stores`.
 */
function hidden(value: string): string {
  return /\d/u.test(value) ? mark : value;
}
