/** The address of OpenAI itself. */
export const openaiUrl = 'https://api.openai.com/v1';

/** The kind for resources on Azure. */
export const azure = { kind: 'azure', takes: ['apiVersion'], needs: ['apiVersion'] } as const;
