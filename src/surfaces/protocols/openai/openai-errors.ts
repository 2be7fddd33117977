import type { JsonValue } from "../../../kernel/index.ts";
import type { ErrorFormat, Problem } from "../../http/problem.ts";
import { named, nullable, object, text, type ValueOf } from "../../http/schema/schema.ts";

const errorSchema = named(
  "OpenAiError",
  object({
    error: object({
      message: text({ description: "What is wrong, where, and how to fix it." }),
      type: text(),
      param: nullable(text({ description: "The parameter that is wrong." })),
      code: text({ description: "The fault code. Compare this, not the texts." }),
    }),
  }),
);

type OpenAiError = ValueOf<typeof errorSchema>;

/** Writes errors as the API of OpenAI does. */
export const openAiErrors: ErrorFormat = Object.freeze({
  contentType: "application/json",
  schema: errorSchema,
  body: openAiError,
  // Clients repeat a request after 409. That would not help: the session is busy, or the key was used for another request.
  status: ({ status }: Problem) => (status === 409 ? 400 : status),
});

export function openAiError({ detail, status, code, details }: Problem): OpenAiError {
  const param = details?.["param"] ?? paramAt(details?.["path"]);
  // Some codes of the protocol say more than those of Reeve.
  const own = details?.["openAiCode"];
  return {
    error: {
      message: detail,
      type: typeOf(status),
      param: typeof param === "string" ? param : null,
      code: typeof own === "string" ? own : code,
    },
  };
}

function typeOf(status: number): string {
  if (status === 401) return "authentication_error";
  if (status === 403) return "permission_error";
  if (status === 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

/** Converts a JSON pointer to the name of a parameter, such as `messages[1].content` for `/messages/1/content`. */
function paramAt(path: JsonValue | undefined): string | null {
  if (typeof path !== "string" || path === "") return null;
  return path
    .slice(1)
    .replaceAll(/\/(\d+)(?=\/|$)/gu, "[$1]")
    .replaceAll("/", ".");
}
