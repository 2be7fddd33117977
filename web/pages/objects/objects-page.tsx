import { visibleText, type JsonValue } from "../../../src/kernel/index.ts";
import type { JSX } from "preact";
import { get } from "../../api/client.ts";
import { useRead } from "../../api/use-read.ts";
import { oneLine } from "../../base/format.ts";
import { objectPath, place, setQuery } from "../../base/route.ts";
import { CopyButton } from "../../parts/copy-button.tsx";
import { shownName } from "../../parts/name.tsx";
import { LineOfKey, LinesByKey, readLines } from "./calls-in-line.tsx";

/** Number of keys of a page of the list. */
const mostKeys = 50;
/** Number of characters of a state that a line of the list has. */
const mostOfState = 300;

/** Where a state is: the object, and the tenant of its keys. `null`: the tenant of the token, or no tenant. */
interface StatesOf {
  readonly name: string;
  readonly tenantId: string | null;
}

/** The states of an object by key, or the state of one key. */
export function ObjectsPage(): JSX.Element {
  const { query } = place.value;
  const of: StatesOf = { name: query.get("name") ?? "", tenantId: query.get("tenant") };
  const key = query.get("key");
  if (of.name === "")
    return (
      <main class="page objects" id="main">
        <div class="page-head">
          <h1>State of an object</h1>
        </div>
        <p class="mid">
          The address names no object. Choose <em>State by key</em> of an object under{" "}
          <a class="link" href="/agents">
            Agents
          </a>
          .
        </p>
      </main>
    );
  return (
    <main class="page objects" id="main">
      <nav class="crumbs" aria-label="Path">
        <a href="/agents">Agents</a>
        <span aria-hidden="true">/</span>
        {key === null ? (
          <span class="cut">{shownName(of.name)}</span>
        ) : (
          <a class="cut" href={objectPath(of.name, of)}>
            {shownName(of.name)}
          </a>
        )}
      </nav>
      {key === null ? <Keys of={of} after={query.get("after")} /> : <OneKey of={of} chosen={key} />}
    </main>
  );
}

/** The query of a request for states. */
function tenantOf({ tenantId }: StatesOf): { readonly tenantId?: string } {
  return tenantId === null ? {} : { tenantId };
}

function Keys({ of, after }: { readonly of: StatesOf; readonly after: string | null }): JSX.Element {
  const { name, tenantId } = of;
  const read = () =>
    get("/api/objects/{name}", {
      params: { name },
      query: { ...tenantOf(of), limit: mostKeys, ...(after !== null && { after }) },
    });
  const { value, problem, again } = useRead(read, [name, tenantId, after]);
  const lines = useRead((signal) => readLines(of, signal), [name, tenantId]);
  return (
    <>
      <div class="page-head">
        <h1 class="cut">{shownName(name)}</h1>
        <TenantField of={of} />
        <ReadAgain reads={[again, lines.again]} />
      </div>
      {problem !== null && <p class="problem">{problem}</p>}
      {lines.problem !== null && lines.problem !== problem && <p class="problem">{lines.problem}</p>}
      {lines.value !== null && <LinesByKey of={of} lines={lines.value} />}
      {value?.states.length === 0 && (
        <p class="mid">
          {after === null
            ? "No key has a state. A handler sets it with ctx.setState(value)."
            : "No further key has a state."}
        </p>
      )}
      {value !== null && value.states.length > 0 && (
        <table class="table states">
          <thead>
            <tr>
              <th>Key</th>
              <th>State</th>
            </tr>
          </thead>
          <tbody>
            {value.states.map(({ key, state }) => (
              <tr key={key}>
                <td class="cut">
                  <a class="link" title={shownName(key)} href={objectPath(name, { key, tenantId })}>
                    {shownName(key)}
                  </a>
                </td>
                <td class="cut">
                  <code>{oneLine(JSON.stringify(state), mostOfState)}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <p class="actions">
        {after !== null && (
          <a class="button" href={objectPath(name, { tenantId })}>
            First keys
          </a>
        )}
        {value?.next != null && (
          <a
            class="button"
            href={`${objectPath(name, { tenantId })}&after=${encodeURIComponent(value.next)}`}
          >
            Next keys
          </a>
        )}
      </p>
    </>
  );
}

function ReadAgain({ reads }: { readonly reads: readonly (() => void)[] }): JSX.Element {
  return (
    <button class="button" onClick={() => reads.forEach((again) => again())}>
      Read again
    </button>
  );
}

/** The tenant of the keys, for a token that sees all tenants. */
function TenantField({ of: { name, tenantId } }: { readonly of: StatesOf }): JSX.Element | null {
  const { value: access } = useRead(() => get("/api/access"), []);
  if (access === null || access.tenantId !== null) return null;
  return (
    <label class="field tenant-of">
      Tenant
      <input
        key={name}
        placeholder="none"
        value={tenantId ?? ""}
        onChange={({ currentTarget: { value } }) => {
          setQuery("after", null);
          setQuery("tenant", value === "" ? null : value);
        }}
      />
    </label>
  );
}

/** The state of a key. `none`: the key has none. */
async function stateOf(of: StatesOf, key: string): Promise<{ readonly state: JsonValue } | "none"> {
  // The key is no part of the path, because a path cannot contain every key.
  const { states } = await get("/api/objects/{name}", {
    params: { name: of.name },
    query: { ...tenantOf(of), key },
  });
  return states[0] ?? "none";
}

function OneKey({ of, chosen }: { readonly of: StatesOf; readonly chosen: string }): JSX.Element {
  const { value, problem, again } = useRead(() => stateOf(of, chosen), [of.name, of.tenantId, chosen]);
  const lines = useRead((signal) => readLines(of, signal), [of.name, of.tenantId]);
  const text = value === null || value === "none" ? null : JSON.stringify(value.state, null, 2);
  return (
    <>
      <div class="page-head">
        <h1 class="cut" title={shownName(chosen)}>
          {shownName(chosen)}
        </h1>
        <a class="button quiet" href={`/runs?agent=${encodeURIComponent(of.name)}`}>
          Calls of the object
        </a>
        <ReadAgain reads={[again, lines.again]} />
      </div>
      {problem !== null && <p class="problem">{problem}</p>}
      {lines.problem !== null && lines.problem !== problem && <p class="problem">{lines.problem}</p>}
      {value === "none" && (
        <p class="mid">This key has no state: no call has set it, or a call has cleared it.</p>
      )}
      {text !== null && (
        <section class="state" aria-label="State of the key">
          <CopyButton text={text} label="Copy the state" />
          <pre>{visibleText(text)}</pre>
        </section>
      )}
      {lines.value !== null && <LineOfKey chosen={chosen} lines={lines.value} />}
    </>
  );
}
