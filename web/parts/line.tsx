import type { JSX } from "preact";
import { usd } from "../base/format.ts";

/** One part of a budget meter with its mark, its name and its amount. */
export function Line({
  kind,
  name,
  amount,
}: {
  readonly kind: string;
  readonly name: string;
  readonly amount: number;
}): JSX.Element {
  return (
    <div>
      <dt>
        <i class={kind} />
        {name}
      </dt>
      <dd>{usd(amount)}</dd>
    </div>
  );
}
