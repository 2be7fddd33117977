import { restoreFiles, type RestoreState } from "../../../capabilities/index.ts";
import { Fault } from "../../../kernel/index.ts";
import { reply, route, type Route } from "../../http/route.ts";
import { entryId, sessionParams } from "../../http/schema/session-schemas.ts";
import { choice, flag, integer, list, nullable, object, optional, text } from "../../http/schema/schema.ts";

const states = [
  "restorable",
  "restored",
  "same",
  "changed",
  "not_kept",
  "outside",
  "failed",
] as const satisfies readonly RestoreState[];

const restored = {
  status: 200,
  description: "The files that tools changed after the entry, and what cannot be undone.",
  schema: object({
    files: list(
      object({
        path: text(),
        state: choice(states),
        wasAbsent: flag(),
        presentHash: nullable(text()),
        diff: text(),
        reason: text(),
      }),
    ),
    erased: integer(),
    otherCalls: list(object({ toolName: text(), count: integer() })),
  }),
};

/**
 * Creates the route that restores files that `write` and `edit` have changed since an entry of a session. Files
 * outside of `folders` are not changed.
 */
export function restoreFilesRoute({ folders }: { readonly folders: readonly string[] }): Route {
  return route({
    id: "sessions.restore-files",
    method: "POST",
    path: "/api/sessions/{sessionId}/restore-files",
    summary:
      "Restore the files that the tools write and edit changed after an entry, in all branches of the session. Without `apply`, the answer shows what would change; `only` applies what was shown.",
    scope: "admin",
    params: sessionParams,
    body: object({
      entryId,
      apply: optional(flag()),
      only: optional(list(object({ path: text(), presentHash: nullable(text()) }))),
    }),
    responses: [restored],
    handle: async ({ runtime, params: { sessionId }, body, access }) => {
      if (access.tenantId !== null)
        throw new Fault(
          "permission_denied",
          "the files belong to all tenants; use a token with the scope admin and without a tenant",
        );
      const { entryId: from, ...options } = body;
      const { changes, ...rest } = await runtime.sessions.fileChanges(sessionId, from);
      return reply(restored, { files: await restoreFiles(changes, { folders, ...options }), ...rest });
    },
  });
}
