import { Fault } from "../../../kernel/index.ts";
import type { PageLogin } from "../../http/access/page-login.ts";
import { isForPerson, safeTarget, signInPage } from "../sign-in-page.ts";
import { route } from "../../http/route.ts";
import { object, optional, text } from "../../http/schema/schema.ts";
import type { ServerParts } from "../../http/server-parts.ts";

/** Maximum length of the path to which a person is redirected after signing in. */
const mostTarget = 4_096;

const redirected = { status: 303, description: "The cookie is set; the page follows." };
const asked = {
  status: 401,
  description: "The page on which a person enters a token.",
  contentType: "text/html",
};

function loginOf({ login }: ServerParts): PageLogin {
  if (login === undefined)
    throw new Fault("not_found", "this server needs no token, so there is nothing to log in to");
  return login;
}

const useLink = route({
  id: "access.login",
  method: "GET",
  path: "/login",
  summary:
    "Use a link of `reeve serve` once: sets the cookie of the page. Without a code, shows a person the page on which to enter a token.",
  scope: null,
  query: object({
    code: optional(text({ maxLength: 200 })),
    to: optional(text({ maxLength: mostTarget, description: "Path that follows. Default: `/`." })),
    why: optional(text({ maxLength: 20, description: "`used` after a link that was used before." })),
  }),
  responses: [redirected, asked],
  handle: async ({ server, query: { code, to, why }, request }) => {
    const login = loginOf(server);
    const { pageFonts: fonts } = server;
    if (code === undefined) {
      // A person who opens their link again in the same browser is signed in already.
      if (await login.isSignedIn(request)) return { status: 303, headers: { location: safeTarget(to) } };
      if (isForPerson(request))
        return signInPage({ reason: why === "used" ? "used" : "missing", to: safeTarget(to), fonts });
      throw new Fault(
        "invalid_argument",
        "invalid query of /login: expected the code of a link of reeve serve",
      );
    }
    try {
      return { status: 303, headers: { location: safeTarget(to), "set-cookie": await login.redeem(code) } };
    } catch (error) {
      const isUsed = Fault.is(error) && error.code === "unauthenticated";
      // The address that follows does not contain the code.
      if (isUsed && isForPerson(request)) return { status: 303, headers: { location: "/login?why=used" } };
      throw error;
    }
  },
});

/** Reads the fields of the form. The size of the body is limited as for every route. */
async function fieldsOf(request: Request): Promise<URLSearchParams> {
  const type = request.headers.get("content-type") ?? "";
  if (!/^application\/x-www-form-urlencoded(?:\s*;|$)/iu.test(type))
    throw new Fault(
      "invalid_argument",
      "invalid body of POST /login: expected a form of the type application/x-www-form-urlencoded with the field token; programs send the header Authorization",
    );
  return new URLSearchParams(await request.text());
}

const enterToken = route({
  id: "access.signIn",
  method: "POST",
  path: "/login",
  summary: "Sign in with a token that a person enters in the form of the page: the token becomes its cookie.",
  scope: null,
  responses: [redirected, asked],
  handle: async ({ server, request }) => {
    const login = loginOf(server);
    const fields = await fieldsOf(request);
    const token = (fields.get("token") ?? "").trim();
    const to = safeTarget(fields.get("to"));
    try {
      return { status: 303, headers: { location: to, "set-cookie": await login.signIn(token) } };
    } catch (error) {
      if (!Fault.is(error) || error.code !== "unauthenticated" || !isForPerson(request)) throw error;
      return signInPage({ reason: "unknown", to, token, fonts: server.pageFonts });
    }
  },
});

export const signInRoutes = [useLink, enterToken] as const;
