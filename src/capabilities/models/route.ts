import { Fault, type Model, type ModelRequest } from "../../kernel/index.ts";
import { ChosenModel } from "./chosen-model.ts";
import { toModel, type ModelLike } from "./to-model.ts";

export interface RouteOptions<Name extends string> {
  readonly models: Readonly<Record<Name, ModelLike>>;
  /** Names the model for a request; `role` is that of the call (`ctx.llm({ role })`). */
  readonly choose: (request: ModelRequest, task: { readonly role: string }) => NoInfer<Name>;
}

/** Sends each request to one of several models: the cheap one where it will do, the one that can see where there is a picture. */
export function route<const Name extends string>({ models, choose }: RouteOptions<Name>): Model {
  const known = new Map(Object.entries<ModelLike>(models).map(([name, model]) => [name, toModel(model)]));
  const [first] = known.values();
  if (first === undefined) throw new Fault("invalid_argument", "route needs at least one model");
  return new ChosenModel(first, {
    candidates: (request, task) => {
      const name = choose(request, task);
      const model = known.get(name);
      if (model !== undefined) return [model];
      throw new Fault(
        "invalid_argument",
        `route chose ${JSON.stringify(name)}, which is not among its models: ${[...known.keys()].join(", ")}`,
      );
    },
    shouldFallBack: () => false,
  });
}
