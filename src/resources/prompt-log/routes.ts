import { Type } from 'typebox';
import type { AuditEvent } from '#core/audit';
import { nounRoute, type NounRoute } from '#http/noun-route';
import type { LoggedPrompt, PromptStore } from './store.ts';

const LogObject = Type.Object({
  id: Type.Integer(),
  user_id: Type.Integer(),
  date_time: Type.String({ description: 'RFC 1123' }),
  model: Type.String({ description: 'The model that answered.' }),
  prompt_tokens: Type.Integer(),
  completion_tokens: Type.Integer(),
  total_tokens: Type.Integer({ description: 'What was charged, in plan tokens.' }),
  prompt: Type.String({ description: 'Empty where prompts are not kept.' }),
  response: Type.String(),
  prompt_length: Type.Integer({ description: 'Characters of the whole prompt.' }),
  response_length: Type.Integer(),
  prompt_truncated: Type.Boolean(),
  response_truncated: Type.Boolean(),
  teach: Type.Enum(['True', 'False']),
  ip: Type.String(),
});

const most = 100;

/** An administrator's look at the prompts of others. */
type Look = Pick<AuditEvent, 'by' | 'action' | 'target'>;

/** The calls of a user with their prompts and answers, in the words of the native interface. */
export function promptLogRoutes(prompts: Pick<PromptStore, 'list'>, looked: (look: Look) => Promise<void>): readonly NounRoute[] {
  return [
    nounRoute('POST', '/user/get-user-logs', {
      scope: 'unscoped',
      owner: 'caller',
      summary: 'Your last calls with the first 2,000 characters of their prompts and answers, newest first.',
      input: Type.Object({
        limit: Type.Optional(Type.Integer({ minimum: 1, description: `Maximum number of rows; above ${most}, or absent: ${most}.` })),
        before_id: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'Only those before this id.' })),
        full_text: Type.Optional(Type.Boolean({ description: 'Prompts and answers are cut all the same.' })),
        user_id: Type.Optional(
          Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'For administrators: whose they are. Ignored from others.' }),
        ),
      }),
      inputMayBeLeftOut: true,
      output: Type.Array(LogObject),
      async answer({ caller, by, input: { limit = most, before_id: before, user_id: userId = caller.userId } }) {
        const wanted = { limit: Math.min(limit, most), before };
        if (userId === caller.userId || caller.role !== 'admin') return (await prompts.list(caller.userId, { ...wanted, forAdministrators: false })).map(shown);
        await looked({ by, action: 'prompts.read', target: { kind: 'user', id: userId } });
        return (await prompts.list(userId, { ...wanted, forAdministrators: true })).map(shown);
      },
    }),
  ];
}

const shown = (row: LoggedPrompt) => ({
  id: row.id,
  user_id: row.userId,
  date_time: row.at.toUTCString(),
  model: row.model,
  prompt_tokens: row.inputTokens,
  completion_tokens: row.outputTokens,
  total_tokens: row.planTokens,
  prompt: row.prompt,
  response: row.answer,
  prompt_length: row.promptLength,
  response_length: row.answerLength,
  prompt_truncated: row.promptLength > row.prompt.length,
  response_truncated: row.answerLength > row.answer.length,
  teach: row.isTraining ? 'True' : 'False',
  ip: row.address,
});
