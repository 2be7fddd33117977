import { visibleLine, visibleText } from "../../src/kernel/index.ts";
import type { ComponentChildren, JSX } from "preact";
import { blocksOf, inlineOf, type Block, type Inline as Piece, type ListItem } from "../model/markdown.ts";

/** The text of a model as its Markdown says: paragraphs, lists, tables, quotes, code, emphasis and links. */
export function Prose({
  text,
  children,
}: {
  readonly text: string;
  /** What follows the last word, such as a caret. */
  readonly children?: ComponentChildren;
}): JSX.Element {
  const blocks = blocksOf(text);
  return (
    <div class="prose">
      {blocks.map((block, at) => (
        <BlockView key={at} block={block}>
          {at === blocks.length - 1 ? children : null}
        </BlockView>
      ))}
      {blocks.length === 0 && <p>{children}</p>}
    </div>
  );
}

function BlockView({
  block,
  children,
}: {
  readonly block: Block;
  readonly children: ComponentChildren;
}): JSX.Element {
  switch (block.kind) {
    case "code":
      return (
        <pre tabIndex={0}>
          {visibleText(block.text)}
          {children}
        </pre>
      );
    case "heading":
      return (
        <p>
          <strong>
            <Inline text={block.text} />
          </strong>
          {children}
        </p>
      );
    case "quote":
      return (
        <blockquote>
          <Inline text={block.text} />
          {children}
        </blockquote>
      );
    case "list":
      return <List items={block.items}>{children}</List>;
    case "table":
      return (
        <Table head={block.head} right={block.right} rows={block.rows}>
          {children}
        </Table>
      );
    default:
      return (
        <p>
          <Inline text={block.text} />
          {children}
        </p>
      );
  }
}

/** The entries are drawn with their own marks, so that numbers are those that the model wrote. */
function List({
  items,
  children,
}: {
  readonly items: readonly ListItem[];
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <ul>
      {items.map(({ level, number, text }, at) => (
        <li
          key={at}
          class={number === null ? "" : "numbered"}
          style={{ "--level": level }}
          {...(number !== null && { "data-number": `${number}.` })}
        >
          <Inline text={text} />
          {at === items.length - 1 ? children : null}
        </li>
      ))}
    </ul>
  );
}

function Table({
  head,
  right,
  rows,
  children,
}: {
  readonly head: readonly string[];
  readonly right: ReadonlySet<number>;
  readonly rows: readonly (readonly string[])[];
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <div class="prose-table" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {head.map((cell, at) => (
              <th key={at} scope="col" class={right.has(at) ? "right" : ""}>
                <Inline text={cell} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {head.map((_name, column) => (
                <td key={column} class={right.has(column) ? "right" : ""}>
                  <Inline text={row[column] ?? ""} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {children}
    </div>
  );
}

function Inline({ text }: { readonly text: string }): JSX.Element {
  return (
    <>
      {inlineOf(text).map((piece, at) => (
        <PieceView key={at} piece={piece} />
      ))}
    </>
  );
}

function PieceView({ piece }: { readonly piece: Piece }): JSX.Element {
  switch (piece.kind) {
    case "code":
      return <code>{visibleLine(piece.text)}</code>;
    case "strong":
      return <strong>{piece.text}</strong>;
    case "emphasis":
      return <em>{piece.text}</em>;
    case "link":
      return <Link text={piece.text} href={piece.href} />;
    default:
      return <>{piece.text}</>;
  }
}

/**
 * A link in a model's text. Its words may hide its target, so the host is shown after them, unless the words are
 * the address itself.
 */
function Link({ text, href }: { readonly text: string; readonly href: string }): JSX.Element {
  const { host } = new URL(href);
  return (
    <>
      <a href={href} target="_blank" rel="noopener noreferrer" title={visibleLine(href)}>
        {visibleLine(text)}
      </a>
      {text !== href && host !== "" && <span class="dim"> ({visibleLine(host)})</span>}
    </>
  );
}
