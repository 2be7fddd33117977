import { escapeMarkup } from "../../kernel/index.ts";
import { pagePolicy, styleHashes } from "../http/response.ts";

/** The reason why a person sees the sign-in page. */
type SignInReason = "used" | "missing" | "unknown" | "wait";

export interface SignInOptions {
  readonly reason: SignInReason;
  /** Path to which the person is redirected after signing in. */
  readonly to: string;
  /** CSS rules that load the fonts of Reeve's page. Empty if the server has no page. */
  readonly fonts: string;
  /** The content of the input field, if a token was refused. Default: empty. */
  readonly token?: string;
  /** Seconds to wait, with the reason `wait`. */
  readonly retryAfter?: number;
}

const reasons: Readonly<Record<SignInReason, string>> = {
  used: "This link was used before, or it belongs to an earlier start of the server. A link works once. Runs are not affected.",
  missing:
    "This browser has no valid token: it has none yet, or its token was revoked or has expired. Runs are not affected.",
  unknown: "This token is not known here: it is misspelt, was revoked, or has expired.",
  wait: "There were too many requests without a valid token.",
};

/**
 * Style sheet of the sign-in page, with the colours of `web/style/tokens.css`. The content security policy allows
 * it by its hash.
 */
const style = `
:root{color-scheme:light dark;--bg:#f5f7f7;--surface:#fff;--line:#dfe4e4;--edge:#859092;--ink:#11181a;--ink-2:#435053;--accent:#0a6b60;--on:#fff;--wait:#8a5200}
@media (prefers-color-scheme:dark){:root{--bg:#0d1314;--surface:#141c1e;--line:#2a3538;--edge:#6d7b7e;--ink:#eef3f3;--ink-2:#adb9ba;--accent:#5cc4b4;--on:#06201c;--wait:#f2bd6b}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:13px/20px "Noto Sans",-apple-system,BlinkMacSystemFont,"Segoe UI",Roboto,"Liberation Sans","DejaVu Sans",sans-serif}
main{max-width:400px;margin:48px auto;background:var(--surface);border:1px solid var(--line);border-radius:10px}
section{padding:32px;overflow-wrap:anywhere}
section+section{border-top:1px solid var(--line);padding-top:20px}
svg{width:28px;height:36px;fill:var(--accent)}
h1{font-size:20px;line-height:28px;margin:12px 0}
p{margin:0 0 16px;color:var(--ink-2)}
p.why{color:var(--wait)}
label{display:block;margin-bottom:4px;color:var(--ink-2)}
input,button{width:100%;height:40px;border-radius:6px;font:inherit}
input{padding:0 12px;border:1px solid var(--edge);background:var(--surface);color:var(--ink);font-family:"Source Code Pro",Menlo,"Cascadia Mono",Consolas,monospace}
button{margin:12px 0;border:0;background:var(--accent);color:var(--on);font-weight:600;cursor:pointer}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
small{font-size:12px;color:var(--ink-2)}
code{font-family:"Source Code Pro",Menlo,"Cascadia Mono",Consolas,monospace;user-select:all}
@media (max-width:440px){main{margin:0;border:0;border-radius:0;min-height:100vh}}
`;

/**
 * Returns the page on which a person enters a token. The page needs no script, so that it also works where Reeve's
 * page cannot be loaded. The token is sent in the body of the form, never in a URL.
 */
export function signInPage({ reason, to, fonts, token = "", retryAfter }: SignInOptions): Response {
  const wait = retryAfter === undefined ? "" : ` Wait ${retryAfter} s, then try again.`;
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Sign in to Reeve</title>
<link rel="icon" href="data:,">
<style>${fonts}${style}</style>
</head>
<body>
<main>
<section>
<svg viewBox="0 0 14 16" aria-hidden="true"><path d="M1 1h11a1.750 1.750 0 0 0 0 3.500 1.750 1.750 0 0 0 0 3.500 1.750 1.750 0 0 0 0 3.500 1.750 1.750 0 0 0 0 3.500H1z"/></svg>
<h1>Sign in to reeve</h1>
<p class="why" role="alert">${reasons[reason]}${wait}</p>
<form method="post" action="/login">
<input type="hidden" name="to" value="${escapeMarkup(to)}">
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="off" spellcheck="false" placeholder="reeve_..." required autofocus value="${escapeMarkup(token)}">
<button>Sign in</button>
</form>
<small>The token becomes a cookie of this browser, valid for 30 days, and is never part of an address.</small>
</section>
<section>
<p>No token? On the machine of the server:</p>
<p><code>reeve token create --scope admin</code></p>
<small>It prints a token. A restart of <code>reeve serve</code> prints a new link that works once.</small>
</section>
</main>
</body>
</html>
`;
  return new Response(html, {
    status: reason === "wait" ? 429 : 401,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": pagePolicy(styleHashes(html)),
      "cache-control": "no-store",
      // With `no-referrer`, a browser sends the form with the origin null, which the server refuses.
      "referrer-policy": "same-origin",
      ...(retryAfter !== undefined && { "retry-after": String(retryAfter) }),
    },
  });
}

/**
 * Returns the path to which a person is redirected after signing in: a path of this server, or `/`. Another host, a
 * scheme, and the path of the form itself are refused, so that no link leads to another site.
 */
export function safeTarget(to: string | null | undefined): string {
  if (to === null || to === undefined || !/^\/(?![/\\])[^\s\\]*$/u.test(to)) return "/";
  const url = new URL(to, "http://page.invalid");
  const isHere = url.host === "page.invalid" && url.pathname !== "/login";
  return isHere ? `${url.pathname}${url.search}${url.hash}` : "/";
}

/** Whether a person opens an address in a browser, and not a program or a script. */
export function isForPerson({ headers, method }: Request): boolean {
  return (method === "GET" || method === "POST") && headers.get("accept")?.includes("text/html") === true;
}
