/** The text that replaces a removed secret. */
const mark = "[secret]";

/** Matches keys with a prefix that identifies the provider. */
const marked =
  /\b(?:gh[opsur]_|github_pat_|glpat-|hf_|r8_|xox[abprs]-)[\w-]{10,200}|\bAIza[\w-]{30,60}|\bya29\.[\w-]{10,400}|\bA(?:KIA|SIA)[A-Z\d]{12,20}|\beyJ[\w-]{10,2000}\.[\w-]{10,2000}(?:\.[\w-]{0,2000})?/gu;

/** Matches keys with a prefix that also begins ordinary words such as `key-value`; a digit distinguishes them. */
const numbered = /\b(?:sk|rk|pk|gsk|xai|pplx|fw|nvapi|key)[-_][\w-]{12,200}/gu;

/** Matches credentials after a scheme, as in `Authorization: Bearer …`. */
const carried = /\b((?:Bearer|Basic|Token)(?:\s{1,4}|%20))([\w.~+/=-]{8,4000})/giu;

const names =
  "(?:x-)?(?:api|access|auth|secret|private|subscription)[-_ ]?(?:key|token)|secret|password|passwd|signature|authorization|credential";

/** Matches credentials after a name: `api_key=…`, `"apiKey": "…"`, `x-api-key: …`. */
const named = new RegExp(`((?:${names})["']?\\s{0,4}[:=]\\s{0,4}["']?)([^\\s"'&,;]{6,4000})`, "giu");

/** Matches credentials in a URL: `?key=…`, and the user name and password before the host. */
const inQuery = /([?&](?:key|token|sig|code|auth)=)[^\s"'&#]{4,4000}/giu;
const inAuthority = /(\b[a-z][a-z\d+.-]{1,20}:\/\/)[^\s/@:]{0,200}:[^\s/@]{1,200}@/giu;

/**
 * Removes keys, tokens and passwords that errors of providers and clients quote, before a text is stored, emitted or
 * shown. It recognises the usual shapes and does not prove that a text contains no secret. Costs linear time.
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

/** Replaces a value by the mark, unless it contains no digit, as in `password: required`. */
function hidden(value: string): string {
  return /\d/u.test(value) ? mark : value;
}
