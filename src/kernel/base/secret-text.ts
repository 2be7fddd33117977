/** Stands in the place of what was taken out. */
const mark = "[secret]";

/** Keys that say by their beginning whose they are. */
const marked =
  /\b(?:gh[opsur]_|github_pat_|glpat-|hf_|r8_|xox[abprs]-)[\w-]{10,200}|\bAIza[\w-]{30,60}|\bya29\.[\w-]{10,400}|\bA(?:KIA|SIA)[A-Z\d]{12,20}|\beyJ[\w-]{10,2000}\.[\w-]{10,2000}(?:\.[\w-]{0,2000})?/gu;

/** The same where a digit has to tell them from words, such as `key-value`. */
const numbered = /\b(?:sk|rk|pk|gsk|xai|pplx|fw|nvapi|key)[-_][\w-]{12,200}/gu;

/** `Authorization: Bearer …`. */
const carried = /\b((?:Bearer|Basic|Token)(?:\s{1,4}|%20))([\w.~+/=-]{8,4000})/giu;

const names =
  "(?:x-)?(?:api|access|auth|secret|private|subscription)[-_ ]?(?:key|token)|secret|password|passwd|signature|authorization|credential";

/** `api_key=…`, `"apiKey": "…"`, `x-api-key: …`. */
const named = new RegExp(`((?:${names})["']?\\s{0,4}[:=]\\s{0,4}["']?)([^\\s"'&,;]{6,4000})`, "giu");

/** In an address: `?key=…`, and the name and password before the host. */
const inQuery = /([?&](?:key|token|sig|code|auth)=)[^\s"'&#]{4,4000}/giu;
const inAuthority = /(\b[a-z][a-z\d+.-]{1,20}:\/\/)[^\s/@:]{0,200}:[^\s/@]{1,200}@/giu;

/**
 * The text without the keys, tokens and passwords that errors of providers and clients quote. For what is stored, told or shown; it
 * knows their usual shapes and proves none absent. Costs what the text is long.
 */
export function withoutSecrets(text: string): string {
  return text
    .replace(marked, mark)
    .replace(numbered, (found) => hidden(found))
    .replace(carried, replaced)
    .replace(named, replaced)
    .replace(inQuery, `$1${mark}`)
    .replace(inAuthority, `$1${mark}@`);
}

function replaced(_found: string, before: string, value: string): string {
  return before + hidden(value);
}

/** A word without a digit in it, as in `password: required`, is left. */
function hidden(value: string): string {
  return /\d/u.test(value) ? mark : value;
}
