import type { JsonObject } from '#core/json';
import type { RunLimits } from '#core/run';
import type { OwnRow } from '../own-rows.ts';

export type AgentMode = 'single' | 'router' | 'autonomous';

export type Approval = 'first' | 'always' | 'never';

/** A tool as its author gives it to an agent; things by their ids. */
export type AgentTool = { readonly approval?: Approval } & (
  | { readonly type: 'mcp'; readonly server: number; readonly tools?: readonly string[] }
  | { readonly type: 'plugin'; readonly plugin: number }
  /** `all`, of built-in agents alone: each dataset that the user may read. */
  | { readonly type: 'dataset'; readonly dataset: number | 'all' }
  | { readonly type: 'http'; readonly name: string; readonly description: string; readonly parameters: JsonObject; readonly request: JsonObject }
  | { readonly type: 'agent'; readonly agent: number }
);

/** What an agent is told, and what it may use. */
export interface AgentDefinition {
  readonly name: string;
  readonly description: string;
  readonly mode: AgentMode;
  readonly instructions: string;
  /** Absent: the chat model of the settings. */
  readonly model?: string;
  readonly tools: readonly AgentTool[];
  readonly variables?: JsonObject;
  readonly limits?: Partial<RunLimits>;
}

export interface Agent {
  readonly id: number;
  readonly uuid: string;
  readonly version: number;
  readonly definition: AgentDefinition;
  readonly isPublished: boolean;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** An agent that a user made, with the version that its reader runs: of the owner the last one, of others the published one, and the last where there is none. */
export interface OwnAgent extends Agent, OwnRow {
  /** Who wrote this version; null: not known. */
  readonly author: number | null;
  /** The version that others run. */
  readonly published: number | null;
}

/** Whether its tools are as the user, or the gateway, wrote them. */
export const isOwn = (agent: Agent | OwnAgent, userId: number): boolean => !('owner' in agent) || (agent.owner === userId && agent.author === userId);

export interface AgentVersion {
  readonly version: number;
  readonly definition: AgentDefinition;
  readonly createdAt: Date;
  readonly publishedAt: Date | null;
}
