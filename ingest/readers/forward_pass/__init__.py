"""Forward pass metrics: what vLLM, SGLang and Dynamo publish of each iteration."""
