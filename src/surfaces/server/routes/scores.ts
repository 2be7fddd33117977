import { longestComment, longestScoreName } from "../../../kernel/index.ts";
import { reply, route } from "../../http/route.ts";
import { runParams, runSummary, storedScore } from "../../http/schema/run-schemas.ts";
import { list, nullable, number, object, optional, text } from "../../http/schema/schema.ts";
import { findRun } from "./find-run.ts";

const listed = {
  status: 200,
  description: "The scores in the order in which they were given.",
  schema: object({ scores: list(storedScore) }),
};

const listScores = route({
  id: "runs.scores",
  method: "GET",
  path: "/api/runs/{runId}/scores",
  summary: "Read the scores of a run with their comments, also those that later ones have replaced.",
  scope: "read",
  params: runParams,
  responses: [listed],
  handle: async (request) => reply(listed, { scores: await (await findRun(request)).scores() }),
});

const scored = { status: 200, description: "The run with its scores.", schema: runSummary };

const scoreRun = route({
  id: "runs.score",
  method: "POST",
  path: "/api/runs/{runId}/scores",
  summary:
    "Score a run, also after its end. A score of the same name and author replaces the former one; repeating the request changes nothing.",
  scope: "run",
  params: runParams,
  body: object({
    name: text({ minLength: 1, maxLength: longestScoreName, description: "What is judged." }),
    value: number({ minimum: 0, maximum: 1, description: "From 0 (bad) to 1 (good)." }),
    comment: optional(nullable(text({ maxLength: longestComment, description: "Why." }))),
    by: optional(
      text({
        minLength: 1,
        maxLength: 256,
        description:
          "Who judges. A token that names a user scores in that name only. Default: the user or the name of the token.",
      }),
    ),
  }),
  responses: [scored],
  handle: async (request) => {
    const run = await findRun(request);
    await run.score(request.body);
    return reply(scored, await run.summary());
  },
});

export const scoreRoutes = [listScores, scoreRun] as const;
