import { describeValue, Fault } from "../../../kernel/index.ts";

/** A deployment, which is an endpoint of workers that is registered with Restate. */
export interface Deployment {
  readonly id: string;
  readonly uri: string;
  /** Time at which it was registered, as ISO 8601 text. */
  readonly createdAt: string;
  /** Names and revisions of the services that the endpoint serves. */
  readonly services: readonly { readonly name: string; readonly revision: number }[];
  /** Whether services start new slices on this deployment. They do if no later deployment serves the same service. */
  readonly isCurrent: boolean;
  /** Number of slices that have begun on this deployment and have not ended. Restate can continue them only here. */
  readonly openInvocations: number;
  /** The runs of up to ten of these slices. */
  readonly openRuns: readonly string[];
}

/** The result of `RestateAdmin.drain`. */
export interface Drained {
  /** The old deployments that were removed. Their workers can be stopped. */
  readonly removed: readonly Deployment[];
  /** The old deployments on which slices still run. */
  readonly remaining: readonly Deployment[];
}

interface OpenInvocation {
  readonly id: string;
  readonly runId: string | null;
}

interface StoredDeployment {
  readonly id: string;
  readonly uri: string;
  readonly created_at: string;
  readonly services: readonly { readonly name: string; readonly revision: number }[];
}

/** Default name of the service under which Restate knows the runs. */
export const defaultService = "reeve-runs";

/** Maximum number of run names that are listed for a deployment. */
const mostNamed = 10;

/**
 * Query for the slices that have begun, with their deployments. Restate assigns a slice to a deployment when the
 * deployment has answered; before that, the deployment of the last attempt is used. A delayed wake-up has neither.
 */
const openInvocations = `SELECT coalesce(pinned_deployment_id, last_attempt_deployment_id) AS id, target_service_key AS "runId"
  FROM sys_invocation WHERE status <> 'completed' AND coalesce(pinned_deployment_id, last_attempt_deployment_id) IS NOT NULL`;

/** Registers, lists and removes the endpoints of workers through the admin API of Restate. */
export class RestateAdmin {
  readonly #url: string;

  constructor(adminUrl: string) {
    if (!URL.canParse(adminUrl))
      throw new Fault(
        "invalid_argument",
        `invalid adminUrl ${describeValue(adminUrl)}: expected the URL of the admin API of Restate, such as "http://127.0.0.1:9070"`,
      );
    this.#url = adminUrl.replace(/\/+$/u, "");
  }

  /** Registers the endpoint at `uri`, so that new slices run on it. A second registration reads its services again. */
  async deploy(uri: string): Promise<string> {
    if (!URL.canParse(uri))
      throw new Fault(
        "invalid_argument",
        `invalid uri ${describeValue(uri)} of a deployment: expected the URL at which Restate reaches the workers, such as "http://127.0.0.1:9080"`,
      );
    const body = { uri, force: true };
    return (await this.#request<{ readonly id: string }>("POST", "/deployments", body)).id;
  }

  /** Returns the deployments, the newest first. */
  async list(): Promise<readonly Deployment[]> {
    const { deployments } = await this.#request<{ readonly deployments: readonly StoredDeployment[] }>(
      "GET",
      "/deployments",
    );
    const open = Map.groupBy(await this.query<OpenInvocation>(openInvocations), ({ id }) => id);
    const newest = new Map<string, number>();
    for (const { services } of deployments)
      for (const { name, revision } of services)
        newest.set(name, Math.max(revision, newest.get(name) ?? revision));
    return deployments
      .map(({ id, uri, created_at: createdAt, services }) => ({
        id,
        uri,
        createdAt,
        services,
        isCurrent: services.some(({ name, revision }) => revision === newest.get(name)),
        openInvocations: open.get(id)?.length ?? 0,
        openRuns: (open.get(id) ?? []).slice(0, mostNamed).map(({ runId }) => runId ?? "unknown"),
      }))
      .toSorted((one, other) => other.createdAt.localeCompare(one.createdAt));
  }

  /**
   * Removes the deployments of the service `service` that no service uses any more and on which no slice runs.
   * Deployments of other services are kept, because Restate may serve other applications too. Default:
   * `reeve-runs`.
   */
  async drain({ service = defaultService }: { readonly service?: string } = {}): Promise<Drained> {
    const old = (await this.list()).filter(
      ({ isCurrent, services }) => !isCurrent && services.some(({ name }) => name === service),
    );
    const removed = old.filter((each) => each.openInvocations === 0);
    for (const { id } of removed) await this.#request("DELETE", `/deployments/${id}?force=true`);
    return { removed, remaining: old.filter((each) => each.openInvocations > 0) };
  }

  /** Runs a query on the tables of Restate, such as `sys_invocation`. */
  async query<Row>(sql: string): Promise<readonly Row[]> {
    return (await this.#request<{ readonly rows: readonly Row[] }>("POST", "/query", { query: sql })).rows;
  }

  async #request<Answer>(method: string, path: string, body?: object): Promise<Answer> {
    let response: Response;
    let text: string;
    try {
      response = await fetch(this.#url + path, {
        method,
        headers: { "content-type": "application/json", accept: "application/json" },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(30_000),
      });
      text = await response.text();
    } catch (error) {
      throw new Fault(
        "engine_unavailable",
        `the admin API of Restate at ${this.#url} cannot be reached; check the address and that Restate runs`,
        { cause: error },
      );
    }
    if (!response.ok)
      throw new Fault(
        "engine_unavailable",
        `the admin API of Restate at ${this.#url} refused ${method} ${path}: ${response.status} ${problemOf(text)}`,
      );
    return (text === "" ? {} : JSON.parse(text)) as Answer;
  }
}

/** Returns the message in an error of the admin API. */
function problemOf(text: string): string {
  const message = /"message":"((?:[^"\\]|\\.)*)"/u.exec(text)?.[1];
  return (message ?? text).slice(0, 400);
}
